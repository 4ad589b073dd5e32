// SPDX-License-Identifier: MIT
// Products of shaders/layers_batch.comp: multiplies the weights of a subgroup's 16 rows by x of all tokens, one stage
// of columns after the other, and gives the sums of the workgroup's columns.
#ifndef INTAGLIO_BATCH_PRODUCTS
#define INTAGLIO_BATCH_PRODUCTS

// Address of a lane's weights of rows lane / 4 + 8 * n of its subgroup's tile, for its first stage (two steps) and way.
// If a block has 32 bytes of codes, a unit is one half of each of a stage's eight blocks, of which a lane has two: so
// 128 bytes of a row are loaded together. Else a unit is a step, and a lane has one of its four blocks.
const bool at_fixed_offsets = codec == codec_q8_0 || codec == codec_q4_0 || codec == codec_q4_1,
           by_halves = codec == codec_q8_0;
struct weight_address {
  uint64_t codes, factors;
  uint half_bytes, second_bytes, tile, block;
};
weight_address here;
weight_address address_of(uint64_t weight, uint product) {
  columns = columns_of(product);
  uint ways = ways_of(product), way = sub % ways, r = lane >> 2 & 3u, group_bytes = group_quads * 16u;
  weight_address out_;
  out_.tile = first_tile(product) + min(sub / ways, tile_count(product) - 1u);
  out_.block = 4u * (2u * first_own_stage(product) + (by_halves ? 0u : way)) + (lane & 3u);
  out_.half_bytes = blocks * 16u;
  out_.second_bytes = 2u * group_bytes;
  uint64_t group = weight + uint64_t(out_.tile * 4u + (lane >> 4)) * uint64_t(group_bytes);
#ifdef INNER_NORMS
  if (dense) {
    out_.codes = group + uint64_t((r * octets + 16u * (2u * first_own_stage(product) + way) + (lane & 3u)) * 16u);
    return out_;
  }
#endif
  out_.codes = group + uint64_t((((by_halves ? 2u : 1u) * r + (by_halves ? way : 0u)) * blocks + out_.block) * 16u);
  out_.factors = codec == codec_q8_0   ? group + uint64_t(128u * blocks + 8u * out_.block + r / 2u * 4u)
                 : codec == codec_q4_0 ? group + uint64_t(64u * blocks + 8u * out_.block + r / 2u * 4u)
                                       : group + uint64_t(64u * blocks + 16u * out_.block + r * 4u);
  return out_;
}
// Loads the weights of a stage's unit into a slot. of_two: 1 for the second unit of a way that has both. With dense
// weights a unit is 64 columns: a way has two units of a stage, or four.
void load_part(uint64_t weight, uint slot, uint n, uint stage, uint of_two) {
  uint block = 8u * stage;
#ifdef INNER_NORMS
  if (dense) {
    HeldQuads from = HeldQuads(n != 0u ? here.codes + uint64_t(here.second_bytes) : here.codes);
    next_parts[slot].raw.a = from.at[32u * stage + 8u * of_two];
    next_parts[slot].raw.b = from.at[32u * stage + 8u * of_two + 4u];
    return;
  }
#endif
  if (at_fixed_offsets) {
    uint64_t codes = here.codes, factors = here.factors;
    if (n != 0u) codes += uint64_t(here.second_bytes), factors += uint64_t(here.second_bytes);
    if (by_halves) {
      if (of_two != 0u) codes += uint64_t(here.half_bytes);
      next_parts[slot].raw.a = HeldQuads(codes).at[block];
      next_parts[slot].raw.b = HeldQuads(codes).at[block + 4u];
      next_parts[slot].factor.x = HeldWords(factors).at[2u * block];
      next_parts[slot].factor.y = HeldWords(factors).at[2u * block + 8u];
    } else {
      next_parts[slot].raw.a = HeldQuads(codes).at[block + 4u * of_two];
      next_parts[slot].factor.x = HeldWords(factors).at[(codec == codec_q4_1 ? 4u : 2u) * (block + 4u * of_two)];
    }
  } else {
    uint r = lane >> 2 & 3u, its = here.block + block + 4u * of_two;
    uvec2 group =
        unpackUint2x32(weight + uint64_t(here.tile * 4u + 2u * n + (lane >> 4)) * uint64_t(group_quads * 16u));
    next_parts[slot].raw =
        load_codes(lane_addresses(group, advanced(group, 16u * its), advanced(group, 8u * its), uvec2(0u)), r);
    next_parts[slot].factor = load_factor(Words(group), r, its);
  }
}

void fetch(uint64_t weight, uint product) {
  bool has_two = ways_of(product) == 1u;
#ifdef INNER_NORMS
  has_two = has_two || dense;
#endif
  [[unroll]] for (uint n = 0u; n < 2u; ++n) {
    load_part(weight, n, n, turned(0u), 0u);
    if (has_two) load_part(weight, 2u + n, n, turned(0u), 1u);
    else load_part(weight, 2u + n, n, turned(1u), 0u);
  }
}

uint sum_quad(uint member, uint token, uint q) { return member * sum_quads + token * 4u + (q ^ (token >> 1 & 3u)); }
// The sum over the workgroup's columns for a quad of rows of a tile.
vec4 workgroup_sum(uint ways, uint tile, uint token, uint q) {
  vec4 y = pool[sum_quad(tile * ways, token, q)];
  if (ways == 2u) {
    precise vec4 both = y + pool[sum_quad(tile * 2u + 1u, token, q)];
    y = both;
  }
  return y;
}

sums_of sums[4];  // of eight tokens each
// Multiplies 16 columns of both halves of the tile's rows, four words of f16, by those of all tokens.
#define MULTIPLY_TOKENS                            \
  weights_of w = weights_matrix(four[0], four[1]); \
  [[unroll]] for (uint g = 0u; g < 4u; ++g)        \
    if (g < row_groups) sums[g] = coopMatMulAdd(w, tokens_matrix(e == 0u ? words[g].xy : words[g].zw), sums[g]);
// Multiplies a unit of the subgroup's tile. Its weights are in slots 2 * k and 2 * k + 1, which then receive those of a
// later stage. from: offset of x in pool
void multiply_unit(uint64_t weight, const uint k, uint block, uint later, uint of_two, uint from, uint magic) {
  uint r = lane >> 2 & 3u;
  block_factors by[2];
  row_part part[2];
#ifdef INNER_NORMS
  if (dense) {
    [[unroll]] for (uint n = 0u; n < 2u; ++n) {
      part[n] = next_parts[2u * k + n];
      load_part(weight, 2u * k + n, n, later, of_two);
    }
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      uvec4 words[4];
      [[unroll]] for (uint g = 0u; g < 4u; ++g)
        if (g < row_groups) words[g] = floatBitsToUint(pool[from + g * 128u + i * 32u]);
      [[unroll]] for (uint e = 0u; e < 2u; ++e) {
        uvec2 four[2];
        [[unroll]] for (uint n = 0u; n < 2u; ++n) {
          uvec4 its = i == 0u ? part[n].raw.a : part[n].raw.b;
          four[n] = dense_f16(e == 0u ? its.xy : its.zw);
        }
        MULTIPLY_TOKENS
      }
    }
    return;
  }
#endif
  [[unroll]] for (uint n = 0u; n < 2u; ++n) {
    part[n] = next_parts[2u * k + n];
    by[n] = factors_of(part[n].factor, r, block);
    if (by_halves) by[n].upper_d = f16vec2(as_pair(part[n].factor.y)[r & 1u]);
    load_part(weight, 2u * k + n, n, later, of_two);
  }
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uvec4 words[4];
    [[unroll]] for (uint g = 0u; g < 4u; ++g)
      if (g < row_groups)
        words[g] =
            floatBitsToUint(pool[from + g * 128u + (by_halves ? i / 2u * step_quads + (i & 1u) * 32u : i * 32u)]);
    [[unroll]] for (uint e = 0u; e < 2u; ++e) {
      uvec2 four[2];
      [[unroll]] for (uint n = 0u; n < 2u; ++n)
        four[n] = four_f16(part[n], by[n], 2u * i + e, magic);
      MULTIPLY_TOKENS
    }
  }
}
// Each way of a stage has one unit; a single way has both. While a stage is multiplied, the next stage's x and the
// weights of two units are in flight. x is read before the products: a wait is for all reads in flight, so this is one
// wait for x and weights. With q8_0 it is read between a stage's two units, where subgroups drift apart, so that some
// read while others multiply.
void multiply(uint product, uint64_t weight, SharedQuads x, x_offsets at, uint most) {
  uint ways = ways_of(product), stages = stages_of(product), magic = code_magic;
  const uint second_unit = by_halves ? 64u : step_quads;  // of a stage's x in pool
  bool works = sub / ways < tile_count(product);
  [[unroll]] for (uint g = 0u; g < 4u; ++g)
    sums[g] = sums_of(0.0);
  uvec4 ahead[2];
  ask(x, at, turned(min(1u, stages - 1u)), ahead);
#define bring_next(stage_, to, stage_after)         \
  {                                                 \
    bring(x, product, at, stage_, to, most, ahead); \
    ask(x, at, stage_after, ahead);                 \
  }
#ifdef INNER_NORMS
  if (dense) {
    [[dont_unroll]] for (uint stage = 0u; stage < stages; ++stage) {
      uint from = (stage & 1u) * buffer_quads + lane, its = turned(stage),
           next_stage = turned(min(stage + 1u, stages - 1u));
      bring_next(next_stage, ~stage & 1u, turned(min(stage + 2u, stages - 1u))) if (works) {
        [[dont_unroll]] for (uint i = 0u; i < 3u - ways; ++i) {  // units of the stage
          bool last = i + ways == 2u;
          uint later = last ? next_stage : its, unit = last ? 0u : 2u,
               of_half = from + (ways == 2u ? sub & 1u : i) * step_quads;
          multiply_unit(weight, 0u, 0u, later, unit, of_half, magic);
          multiply_unit(weight, 1u, 0u, later, unit + 1u, of_half + 64u, magic);
        }
      }
      barrier();
    }
  } else
#endif
      if (ways == 2u) {
    uint from = (sub & 1u) * second_unit + lane;
    [[dont_unroll]] for (uint stage = 0u; stage < stages; stage += 2u) {
#ifdef INNER_NORMS
      uint second = turned(min(stage + 1u, stages - 1u)), third = turned(min(stage + 2u, stages - 1u)),
           fourth = turned(min(stage + 3u, stages - 1u));
#else
      uint second = turned(stage + 1u), third = turned(min(stage + 2u, stages - 2u)),
           fourth = turned(min(stage + 3u, stages - 1u));
#endif
      bring_next(second, 1u, third) if (works)
          multiply_unit(weight, 0u, here.block + 8u * turned(stage), third, 0u, from, magic);
      barrier();
#ifdef INNER_NORMS
      if (stage + 1u == stages) break;
#endif
      bring_next(third, 0u, fourth) if (works)
          multiply_unit(weight, 1u, here.block + 8u * second, fourth, 0u, from + buffer_quads, magic);
      barrier();
    }
  } else {
    [[dont_unroll]] for (uint stage = 0u; stage < stages; ++stage) {
      uint from = (stage & 1u) * buffer_quads + lane, next_stage = turned(min(stage + 1u, stages - 1u)),
           block = here.block + 8u * turned(stage), stage_after = turned(min(stage + 2u, stages - 1u));
      if (!by_halves)
        bring_next(next_stage, ~stage & 1u, stage_after) if (works)
            multiply_unit(weight, 0u, block, next_stage, 0u, from, magic);
      if (by_halves)
        bring_next(next_stage, ~stage & 1u, stage_after) if (works)
            multiply_unit(weight, 1u, block + 4u, next_stage, 1u, from + second_unit, magic);
      barrier();
    }
  }
  if (works) [[unroll]]
    for (uint g = 0u; g < 4u; ++g)
      if (g < row_groups) [[unroll]]
        for (uint e = 0u; e < 4u; ++e) {
          uint token = g * 8u + 2u * (lane & 3u) + (e & 1u), row = (lane >> 2) + 8u * (e >> 1);
          pool[sum_quad(sub, token, row >> 2)][row & 3u] = sums[g][e];
        }
  barrier();
}

#endif
