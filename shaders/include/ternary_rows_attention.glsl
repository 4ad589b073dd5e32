// SPDX-License-Identifier: MIT
// Attention of a batch's rows in shaders/layers_ternary_rows.comp, in attention_batch's order of sums: a workgroup has
// two heads (one, if their number is odd) that share keys and values of a row, and computes span after span. The number
// of spans depends on the position, so all values that cross invocations in a span go through shared memory
// (docs/performance.md).
#ifndef INTAGLIO_TERNARY_ROWS_ATTENTION
#define INTAGLIO_TERNARY_ROWS_ATTENTION

const uint value_lanes = head_dim / 8u, quarter_chunks = chunks / 4u;
// In pool, in floats: sums of values by octet, overlapping scores by half of the channels; probabilities; octets'
// maxima and totals.
const uint chances_at = 32u * heads_each * head_dim, greatest_at = chances_at + heads_each * span_positions,
           totals_at = greatest_at + heads_each * 32u;

#include "rows_spans.glsl"

// A session with drafts has several rows of a pass, one for each of its last positions. Their keys and values reach the
// pool during the dispatch, so a row takes those of the rows in front of it from the exchange.
const uint state_before = 15u;                                  // kernels/state.hpp
shared uint rows_before[most_rows], drafted_before[most_rows];  // the row in front of a row, or most_rows; and how many

void keep_drafted_rows() {
  keep_rows();
  uint t = gl_LocalInvocationIndex;
  if (t < most_rows) {
    uint before = t < rows ? state.at[slot_at(t) + state_before] - 1u : most_rows;  // 0: there is none
    rows_before[t] = before < rows ? before : most_rows;
  }
  barrier();
  if (t < most_rows) {
    uint count = 0u;
    for (uint row = rows_before[t]; row < most_rows && ends[row] != 0u && count < positions[t]; row = rows_before[row])
      ++count;
    drafted_before[t] = count;
  }
}
// Whether a row in front of `row` computes a position.
bool is_drafted(uint row, uint position) {
  return position < positions[row] && position + drafted_before[row] >= positions[row];
}
// What the row that computes a position exchanges of a head: of keys, or, after these, of values.
SharedQuads drafted_quads(uint64_t exchange, uint row, uint position, uint head) {
  for (uint back = positions[row] - position; back != 0u; --back) row = rows_before[row];
  return SharedQuads(exchange + uint64_t(query_at + (row * qkv_size + q_size + head * (head_dim / 2u)) * 4u));
}

float greatest_of_span(uint head) {
  vec4 most = pool[(greatest_at + head * 32u) / 4u];
  [[unroll]] for (uint i = 1u; i < 8u; ++i)
    most = max(most, pool[(greatest_at + head * 32u) / 4u + i]);
  return max(max(most.x, most.y), max(most.z, most.w));
}

void attend(uint layer, uint row, uint first_head, uint kept) {
  uint t = gl_LocalInvocationIndex, kv_head = first_head / (heads / kv_heads), end = ends[row], newest = positions[row];
  uint64_t exchange = address(layer, argument_exchange), keys = address(layer, argument_keys),
           values = address(layer, argument_values);
  float sum = 0.0;  // of a channel of a head
  vec2 weight = vec2(0.0);
  [[dont_unroll]] for (uint first = 0u; first < end; first += span_positions) {
    uint offsets_from = first == 0u ? 32u * kept : 32u * kept_tasks, count = min(end - first, span_positions);
    if (first != 0u) {
      barrier();
      keep_octets(offsets_from, row, first);
      barrier();
    }
    uint own = t & (span_positions - 1u), channels = t / span_positions;  // two quarters of them
    uvec4 key_words[8], value_words[8];
    [[unroll]] for (uint c = 0u; c < 8u; ++c)
      key_words[c] = value_words[c] = uvec4(0u);
    if (own < count) {
      uint at = octet_offsets[offsets_from + own / 8u] + own % 8u;
      WordQuads from = WordQuads(keys + uint64_t(key_index(kv_head, at, 2u * channels)) * 16u);
      [[unroll]] for (uint c = 0u; c < 8u; ++c)
        if (c / 2u < quarter_chunks) key_words[c] = from.at[8u * ((c & 1u) + 4u * (c / 2u))];
    }
    uint octet = t / value_lanes;
    [[unroll]] for (uint j = 0u; j < 8u; ++j)
      if (octet < 32u && octet * 8u + j < count)
        value_words[j] =
            WordQuads(values + uint64_t(((kv_head * context + octet_offsets[offsets_from + octet] + j) * value_lanes +
                                         t % value_lanes)) *
                                   16u)
                .at[0];
    if (first == 0u) {
      SharedWords from = SharedWords(exchange + uint64_t(query_at + row * qkv_size * 4u));
      const uint queries = heads_each * head_dim;
      for (uint i = t; i < queries + head_dim; i += threads) {
        uint pair = i - queries, is_value = pair / (head_dim / 2u),
             of = i < queries ? first_head * head_dim + i
                              : q_size + (is_value * kv_heads + kv_head) * (head_dim / 2u) + pair % (head_dim / 2u);
        uint its = awaited(from, of, from.at[of]);
        if (i < queries) fresh[i / 4u][i & 3u] = uintBitsToFloat(its);
        else fresh_words[pair / 4u][pair & 3u] = its;
      }
    }
    // Keys, then values, in one loop with a bound that drivers do not know: each copy of a wait is long code.
    if (drafted_before[row] != 0u)
      for (uint i = 0u; i < 16u * gl_NumWorkGroups.z; ++i) {
        uint j = i & 7u, its = i < 8u ? own : octet * 8u + j;
        if (its >= count || (i < 8u ? j / 2u >= quarter_chunks : octet >= 32u) || !is_drafted(row, first + its))
          continue;
        SharedQuads from = drafted_quads(exchange, row, first + its, i < 8u ? kv_head : kv_heads + kv_head);
        uint quad = i < 8u ? 2u * channels + (j & 1u) + 4u * (j / 2u) : t % value_lanes;
        uvec4 words = awaited(from, quad, from.at[quad]);
        [[unroll]] for (uint c = 0u; c < 8u; ++c) {
          if (i == c) key_words[c] = words;
          if (i == c + 8u) value_words[c] = words;
        }
      }
    barrier();
    if (own < count) {
      if (first + own == newest) {
        [[unroll]] for (uint c = 0u; c < 8u; ++c)
          if (c / 2u < quarter_chunks) key_words[c] = fresh_words[2u * channels + (c & 1u) + 4u * (c / 2u)];
      }
      [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
        precise vec4 a[2];
        a[0] = a[1] = vec4(0.0);
        [[unroll]] for (uint c = 0u; c < 8u; ++c)
          if (c / 2u < quarter_chunks) {
            key_chunk k = widened(raw_chunk(key_words[c], uvec4(0u)));
            uint from = h * quads + 2u * (2u * channels + (c & 1u) + 4u * (c / 2u));
            precise vec4 low = fresh[from] * k.low, high = fresh[from + 1u] * k.high;
            a[c & 1u] = a[c & 1u] + low;
            a[c & 1u] = a[c & 1u] + high;
          }
        precise float its = ((a[0].x + a[0].y) + (a[0].z + a[0].w)) + ((a[1].x + a[1].y) + (a[1].z + a[1].w));
        pooled((channels * heads_each + h) * span_positions + own) = its;
      }
    }
    barrier();
    if (t < heads_each * span_positions) {
      precise float both = pooled(t) + pooled(heads_each * span_positions + t);
      pooled(chances_at + t) = own < count ? scaled_score(both) : minus_infinity;
    }
    barrier();
    if (t < heads_each * 32u) {
      vec4 most = max(pool[chances_at / 4u + 2u * t], pool[chances_at / 4u + 2u * t + 1u]);
      pooled(greatest_at + t) = max(max(most.x, most.y), max(most.z, most.w));
    }
    barrier();
    if (t < heads_each * span_positions) {
      precise float below = pooled(chances_at + t) - greatest_of_span(t / span_positions);
      pooled(chances_at + t) = own < count ? canonical_exp(own < count ? below : 0.0) : 0.0;
    }
    barrier();
    if (octet < 32u) {
      precise vec4 low[2], high[2];
      [[unroll]] for (uint h = 0u; h < 2u; ++h)
        low[h] = high[h] = vec4(0.0);
      vec4 its_chances[4];
      [[unroll]] for (uint i = 0u; i < 2u * heads_each; ++i)
        its_chances[i] = pool[(chances_at + i / 2u * span_positions) / 4u + octet * 2u + (i & 1u)];
      [[unroll]] for (uint j = 0u; j < 8u; ++j) {
        uint its = octet * 8u + j;
        if (its < count) {
          if (first + its == newest) value_words[j] = fresh_words[chunks + t % value_lanes];
          key_chunk v = widened(raw_chunk(value_words[j], uvec4(0u)));
          [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
            float chance = its_chances[2u * h + j / 4u][j & 3u];
            precise vec4 of_low = chance * v.low, of_high = chance * v.high;
            low[h] = low[h] + of_low;
            high[h] = high[h] + of_high;
          }
        }
      }
      [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
        uint to = ((octet * heads_each + h) * head_dim + t % value_lanes * 8u) / 4u;
        pool[to] = low[h];
        pool[to + 1u] = high[h];
      }
    }
    if (t < heads_each * 32u)
      pooled(totals_at + t) = octet_total(pool[chances_at / 4u + 2u * t], pool[chances_at / 4u + 2u * t + 1u]);
    barrier();
    if (t < heads_each * head_dim) {
      // An octet's total is in one component, eight totals in two quads; sums of values are at their channel, a head's
      // octets one after the other.
      uint h = t / head_dim, quad = h * (head_dim / 4u) + t % head_dim / 4u, component = t & 3u;
      precise float s[4], l[4];
      [[unroll]] for (uint g = 0u; g < 4u; ++g) {
        vec4 low = pool[totals_at / 4u + h * 8u + 2u * g], high = pool[totals_at / 4u + h * 8u + 2u * g + 1u];
        s[g] = l[g] = 0.0;
        [[unroll]] for (uint o = 0u; o < 8u; ++o) {
          s[g] = s[g] + pool[(8u * g + o) * (heads_each * head_dim / 4u) + quad][component];
          l[g] = l[g] + (o < 4u ? low[o] : high[o & 3u]);
        }
      }
      precise float its = (s[0] + s[1]) + (s[2] + s[3]), total = (l[0] + l[1]) + (l[2] + l[3]);
      vec2 later = vec2(greatest_of_span(h), total);
      if (first == 0u) {
        weight = later;
        sum = its;
      } else {
        vec2 f = merge_factors(weight, later);
        precise float merged = sum * f.x + its * f.y;
        sum = merged;
      }
    }
    barrier();
  }
  if (end != 0u && t < heads_each * head_dim) {
    precise float result = sum / weight.y;
    SharedWords(exchange + uint64_t(attended_at)).at[row * q_size + first_head * head_dim + t] =
        floatBitsToUint(written(result));
  }
}

void attention(uint layer) {
  uint kept = 0u;
  for (uint task = gl_WorkGroupID.x; task < rows * tasks_of_row; task += parts)
    attend(layer, task / tasks_of_row, task % tasks_of_row * heads_each, kept++);
}

#endif
