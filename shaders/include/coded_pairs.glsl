// SPDX-License-Identifier: MIT
// Pairs of neighbouring rows of a codec in shaders/layers_coded.comp: their addresses, loads and products. Everything
// that depends on the codec comes from codec.glsl, so that this file can be included for several codecs.

// Whether products take sums of the input.
const bool takes_sums = late_zero != 0 || has_least;
// Bytes of the factors of 32 lanes' units, and of the factors that 256 columns share.
const uint round_factors = factor_form == FACTOR_SIX ? 256u : 128u * factor_bytes,
           supers_each = factor_form == FACTOR_SIX ? 0u : super_bytes;
pair_addresses addresses_of(uint64_t weight, uint product, uint pair) {
  uint n = units_of(product), s = n / 8u, h = pair & 1u;
  uint bytes = 16u * (dense ? 4u * n * octet_quads : (n * (row_code_bytes + factor_bytes) + s * super_bytes + 3u) / 4u);
  uint64_t group = weight + uint64_t(pair >> 1) * bytes;
  pair_addresses out_;
  out_.units = n;
  out_.row = 16u * n * (code_bits == 8u ? 2u : dense ? octet_quads : 1u);
  out_.codes = group + uint64_t(2u * h * out_.row + lane * 16u * (dense ? octet_quads : 1u));
  out_.upper = group + uint64_t(16u * (code_bits & 4u) * n + (2u * h * n + lane) * 8u);
  out_.lowest = group + uint64_t(16u * (code_bits & 6u) * n + (2u * h * n + lane) * 4u);
  out_.factors =
      group + uint64_t(4u * row_code_bytes * n + (factor_form == FACTOR_SIX ? lane / 8u * 64u + 32u * h
                                                  : factor_bytes == 1u      ? 4u * lane
                                                                            : (4u * lane + 2u * h) * factor_bytes));
  out_.factors_shift = 16u * h;
  out_.more = group + uint64_t(4u * (row_code_bytes + factor_bytes) * n + (lane / 8u * 4u + 2u * h) * supers_each);
  if (factor_form == FACTOR_SIX) out_.more = out_.factors + uint64_t(8u + 3u * (lane & 7u) / 4u * 4u);
  return out_;
}
// The address some rounds further.
pair_addresses rounds_after(pair_addresses from, uint rounds) {
  from.codes += uint64_t(rounds * 512u * (dense ? octet_quads : 1u));
  from.upper += uint64_t(rounds * 256u);
  from.lowest += uint64_t(rounds * 128u);
  from.factors += uint64_t(rounds * round_factors);
  from.more += uint64_t(factor_form == FACTOR_SIX ? rounds * round_factors : rounds * 16u * supers_each);
  return from;
}

// Loads round k from `from` on, which is round `round` of the product. Constant distances are part of the loads.
pair_unit load_pair(pair_addresses from, uint k, uint round) {
  uint n = from.units;
  if (ragged && 32u * round + 31u >= n) {  // the last unit again if there are no more
    uint rest = n - 1u - 32u * round, back = lane - min(lane, rest), supers_back = lane / 8u - min(lane, rest) / 8u;
    from.codes -= uint64_t(back * 16u * (dense ? octet_quads : 1u));
    from.upper -= uint64_t(back * 8u);
    from.lowest -= uint64_t(back * 4u);
    from.factors -= uint64_t(factor_form == FACTOR_SIX ? supers_back * 64u : back * 4u * factor_bytes);
    from.more -= uint64_t(supers_back * (factor_form == FACTOR_SIX ? 64u : 4u * supers_each));
  }
  pair_unit unit;
  [[unroll]] for (uint r = 0u; r < 4u; ++r)
    unit.factors.row[r] = uvec4(0u);
  [[unroll]] for (uint r = 0u; r < 2u; ++r) {
    uint64_t codes = from.codes;
    if (r == 1u) codes += uint64_t(from.row);
    WordQuads its = WordQuads(codes);
    const uint round_quads = 32u * (dense ? octet_quads : 1u);
    unit.row[r] = raw_codes(uvec4(0u), uvec4(0u));
    if (dense || code_bits >= 4u) unit.row[r].a = its.at[k * round_quads];
    if (dense && codec == element_f32) unit.row[r].b = its.at[k * round_quads + 1u];
    if (code_bits == 8u) unit.row[r].b = WordQuads(codes + uint64_t(16u * n)).at[k * round_quads];
    if ((code_bits & 2u) != 0u) unit.row[r].b.xy = WordPairs(from.upper + uint64_t(8u * r * n)).at[k * 32u];
    if ((code_bits & 1u) != 0u) unit.row[r].b.z = Words(from.lowest + uint64_t(4u * r * n)).at[k * 32u];
  }
  // The factors of both rows are adjacent.
  if (factor_form == FACTOR_SIX) {  // six_bit_words
    uint further = (lane & 7u) < 7u ? 4u : 0u;
    unit.factors.row[0].xy = WordPairs(from.factors).at[k * 32u];
    unit.factors.row[0].z = Words(from.more).at[k * 64u];
    unit.factors.row[0].w = Words(from.more + uint64_t(further)).at[k * 64u];
  } else if (factor_bytes == 4u) {
    unit.factors.row[0].xy = WordPairs(from.factors).at[k * 64u];
  } else if (factor_bytes == 2u) {
    unit.factors.row[0].x = Words(from.factors).at[k * 64u];
  } else if (!dense) {  // a byte of each row of the group
    unit.factors.row[0].x = Words(from.factors).at[k * 32u] >> from.factors_shift;
  }
  if (supers_each == 2u) unit.factors.row[0].z = Words(from.more).at[k * 8u];
  if (supers_each == 4u) unit.factors.row[1].xy = WordPairs(from.more).at[k * 8u];
  return unit;
}

// Address of the subgroup's pair of rows number `first` of a product, or of the last pair if there are fewer.
pair_addresses first_addresses(uint64_t weight, uint product, uint first) {
#define FIRST_ITEM min(first, max(items_of(product), 1u) - 1u)
  return addresses_of(matrix_of(weight, product, FIRST_ITEM), product, row_pair(product, FIRST_ITEM));
#undef FIRST_ITEM
}
void fetch(uint64_t weight, uint product, uint first) {
  pair_addresses from = first_addresses(weight, product, first);
  [[unroll]] for (uint k = 0u; k < slots; ++k)
    next_units[k] = load_pair(from, k < rounds_of(product) ? k : 0u, k < rounds_of(product) ? k : 0u);
}

// Adds a round's unit of both rows: octets to `low` and `high`, blocks to y. `staged`: the first unit of the input that
// is in shared memory.
void add_round(inout float y[2], inout vec4 low[2], inout vec4 high[2], pair_unit now, uint round, uint n,
               uint staged) {
  uint index = 32u * round + lane;
  bool inside = !ragged || index < n;
  if (ragged) index = min(index, n - 1u);
  uint at = index - staged;
  if (dense) {
    octet x = octet(uintBitsToFloat(pool[at]), uintBitsToFloat(pool[x_units + at]));
    [[unroll]] for (uint r = 0u; r < 2u; ++r) {
      octet w = octet_of(now.row[r]);
      precise vec4 product_low = w.low * x.low, product_high = w.high * x.high;
      precise vec4 low_sum = low[r] + product_low, high_sum = high[r] + product_high;
      low[r] = inside ? low_sum : low[r];
      high[r] = inside ? high_sum : high[r];
    }
  } else {
    fixed_block x;
    [[unroll]] for (uint i = 0u; i < 6u; ++i)
      x.words[i] = pool[i * x_units + at];
    uvec2 rest = x_scales[at];
    x.scale = uintBitsToFloat(rest.x << 22);
    x.sums = ivec2(int(rest.x) >> 16, int(rest.y));
    [[unroll]] for (uint r = 0u; r < 2u; ++r) {
      float sum = add_block(y[r], now.row[r], f16_factors(now.factors, r, index), x);
      y[r] = inside ? sum : y[r];
    }
  }
}
// Adds rounds from `base` on of a pair of rows; the slots then hold the following rounds, or the first ones of the next
// pair.
void add_rounds(inout float y[2], inout vec4 low[2], inout vec4 high[2], pair_addresses here, pair_addresses there,
                bool last, uint base, uint rounds, uint n, uint staged) {
  pair_addresses from = there;
  uint from_round = 0u, left = last ? 0u : rounds;
  if (base + slots < rounds) {
    from = rounds_after(here, base + slots);
    from_round = base + slots;
    left = rounds - from_round;
  }
  [[unroll]] for (uint k = 0u; k < slots; ++k) {
    if (base + k < rounds) add_round(y, low, high, next_units[k], base + k, n, staged);
    if (k < left) next_units[k] = load_pair(from, k, from_round + k);
  }
}

// `parts`: the input is staged in two parts and sums continue over both, so that the bits are unchanged; all subgroups
// then reach the barriers, also those without a pair of rows.
void multiply(uint product, uint64_t weight, uint64_t to, uint first, uint apiece, bool parts) {
  uint quads_ = columns_of(product) / 4u;
  uint n = units_of(product), rounds = rounds_of(product), count = items_of(product);
  pair_addresses here = first_addresses(weight, product, first);
  for (uint turn = parts ? 0u : first; turn < count; turn += apiece) {
    uint p = parts ? turn + first : turn;
#define NEXT_ITEM min(p + apiece, count - 1u)
    pair_addresses there = addresses_of(matrix_of(weight, product, NEXT_ITEM), product, row_pair(product, NEXT_ITEM));
#undef NEXT_ITEM
    float y[2];
    vec4 low[2], high[2];
    [[unroll]] for (uint r = 0u; r < 2u; ++r) {
      y[r] = 0.0;
      low[r] = high[r] = vec4(0.0);
    }
    if (parts) {
      if (turn != 0u) barrier();
      stage(quads_, coded_columns / 4u, 0u, part_units, true);
    }
    BY_CODEC for (uint base = 0u; base < rounds; base += slots) {
      uint staged = staged_before(product, p);
      if (parts && base >= part_units / 32u) {
        staged = part_units;
        if (base == part_units / 32u) {
          barrier();
          stage(quads_, coded_columns / 4u, part_units, n, true);
        }
      }
      add_rounds(y, low, high, here, there, turn + apiece >= count, base, rounds, n, staged);
    }
    if (!parts || p < count) finish_sums(to, product, p, y, low, high);
    here = there;
  }
}
