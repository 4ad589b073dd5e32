// SPDX-License-Identifier: MIT
// Attention of up to eight sessions in shaders/layers_few.comp: a workgroup has two heads (one, where their number is odd) that share keys and values of a session, span after
// span. How many spans there are hangs on the position, so all that crosses invocations within them goes through shared memory (docs/performance.md).
#ifndef INTAGLIO_FEW_ATTENTION
#define INTAGLIO_FEW_ATTENTION

const uint tasks_of_row = heads / heads_each, tasks = rows_at_once * tasks_of_row;
const uint value_lanes = head_dim / 8u, value_groups = threads / value_lanes, value_rounds = span_positions / value_groups;
const uint half_chunks = chunks / 2u;
// In pool, in floats: sums of values by group of positions, before them scores by half of the channels; chances; what octets have.
const uint chances_at = value_groups * heads_each * head_dim, greatest_at = chances_at + heads_each * span_positions, totals_at = greatest_at + heads_each * 32u;

#include "few_spans.glsl"

void attend(uint layer, uint row, uint first_head, bool first_task) {
  uint t = gl_LocalInvocationIndex, kv_head = first_head / (heads / kv_heads), end = ends[row], newest = positions[row];
  uint64_t exchange = place(layer, argument_exchange), keys = place(layer, argument_keys), values = place(layer, argument_values);
  float sum = 0.0;  // of a channel of a head
  vec2 weight = vec2(0.0);
  [[dont_unroll]] for (uint first = 0u; first < end; first += span_positions) {
    uint places_from = first_task && first == 0u ? 0u : 32u, count = min(end - first, span_positions);
    if (places_from != 0u) {
      barrier();
      keep_octets(32u, row, first);
      barrier();
    }
    uint own = t & (span_positions - 1u), channels = t / span_positions;  // half of them
    uvec4 key_words[8], value_words[8];
    [[unroll]] for (uint c = 0u; c < 8u; ++c) key_words[c] = value_words[c] = uvec4(0u);
    if (own < count) {
      uint at = octet_places[places_from + own / 8u] + own % 8u;
      WordQuads from = WordQuads(keys + uint64_t(key_index(kv_head, at, channels * half_chunks)) * 16u);
      [[unroll]] for (uint c = 0u; c < 8u; ++c) if (c < half_chunks) key_words[c] = from.at[8u * c];
    }
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      uint its = i * value_groups + t / value_lanes;
      if (i < value_rounds && its < count)
        value_words[i] = WordQuads(values + uint64_t(((kv_head * context + octet_places[places_from + its / 8u] + its % 8u) * value_lanes + t % value_lanes)) * 16u).at[0];
    }
    if (first == 0u) {
      SharedWords from = SharedWords(exchange + uint64_t(query_at + row * qkv_size * 4u));
      const uint queries = heads_each * head_dim;
      for (uint i = t; i < queries + head_dim; i += threads) {
        uint pair = i - queries, is_value = pair / (head_dim / 2u), of = i < queries ? first_head * head_dim + i : q_size + (is_value * kv_heads + kv_head) * (head_dim / 2u) + pair % (head_dim / 2u);
        uint its = awaited(from, of, from.at[of]);
        if (i < queries) fresh[i / 4u][i & 3u] = uintBitsToFloat(its);
        else fresh_words[pair / 4u][pair & 3u] = its;
      }
    }
    barrier();
    if (own < count) {
      precise vec4 a[2];
      a[0] = a[1] = vec4(0.0);
      if (first + own == newest) {
        [[unroll]] for (uint c = 0u; c < 8u; ++c) if (c < half_chunks) key_words[c] = fresh_words[channels * half_chunks + c];
      }
      [[unroll]] for (uint c = 0u; c < 8u; ++c)
        if (c < half_chunks) {
          key_chunk k = widened(raw_chunk(key_words[c], uvec4(0u)));
          [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
            uint from = h * quads + channels * (quads / 2u) + 2u * c;
            precise vec4 low = fresh[from] * k.low, high = fresh[from + 1u] * k.high;
            a[h] = a[h] + low;
            a[h] = a[h] + high;
          }
        }
      [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
        precise float its = (a[h].x + a[h].y) + (a[h].z + a[h].w);
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
    precise vec4 low[2], high[2];
    [[unroll]] for (uint h = 0u; h < 2u; ++h) low[h] = high[h] = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      uint its = i * value_groups + t / value_lanes;
      if (i < value_rounds && its < count) {
        if (first + its == newest) value_words[i] = fresh_words[chunks + t % value_lanes];
        key_chunk v = widened(raw_chunk(value_words[i], uvec4(0u)));
        [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
          float chance = pooled(chances_at + h * span_positions + its);
          precise vec4 of_low = chance * v.low, of_high = chance * v.high;
          low[h] = low[h] + of_low;
          high[h] = high[h] + of_high;
        }
      }
    }
    [[unroll]] for (uint h = 0u; h < heads_each; ++h) {
      uint to = ((t / value_lanes * heads_each + h) * head_dim + t % value_lanes * 8u) / 4u;
      pool[to] = low[h];
      pool[to + 1u] = high[h];
    }
    if (t < heads_each * 32u) pooled(totals_at + t) = octet_total(pool[chances_at / 4u + 2u * t], pool[chances_at / 4u + 2u * t + 1u]);
    barrier();
    if (t < heads_each * head_dim) {
      uint h = t / head_dim;
      precise float its = 0.0;
      [[unroll]] for (uint g = 0u; g < value_groups; ++g) its = its + pooled(g * heads_each * head_dim + t);
      precise vec4 four = pool[(totals_at + h * 32u) / 4u];
      [[unroll]] for (uint i = 1u; i < 8u; ++i) four = four + pool[(totals_at + h * 32u) / 4u + i];
      precise float total = (four.x + four.y) + (four.z + four.w);
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
  precise float result = end != 0u ? sum / weight.y : 0.0;
  publish(exchange + uint64_t(attended_at), (first_head * head_dim + t) / 8u % (q_size / 8u), row, result, 1u, t < heads_each * head_dim && (t & 7u) == 0u);
}

void attention(uint layer) {
  for (uint task = gl_WorkGroupID.x; task < tasks; task += parts) attend(layer, task / tasks_of_row, task % tasks_of_row * heads_each, task == gl_WorkGroupID.x);
}

#endif
