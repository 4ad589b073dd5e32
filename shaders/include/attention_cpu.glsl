// SPDX-License-Identifier: MIT
// Attention of some heads that share keys and values, computed by one subgroup of a CPU driver.
#ifndef INTAGLIO_ATTENTION_CPU
#define INTAGLIO_ATTENTION_CPU

#ifdef CACHE_OF_FLOATS  // kernels whose caches are never coded
#define value_rows context
#define load_cached_key load_key
#define widened_key widened
#define load_cached_value load_value
#define widened_cached_value widened_value
#else
#include "coded_cache.glsl"
#endif

#ifndef cache_row  // a span's slot, and the cache's slot for a position after it
#define slot_of_span(first) span_slot(first)
#define cache_row(position) (position)
#endif

#define each_head(h) LATER_UNROLLED for (uint h = 0u; h < heads_together; ++h)
// Channel quads of a lane; those past the last one repeat it.
const uint narrowest_lanes = subgroup_width == 0u ? 4u : subgroup_width;
const uint slots = (quads + narrowest_lanes - 1u) / narrowest_lanes;
#define each_slot(s) LATER_UNROLLED for (uint s = 0u; s < slots; ++s) if (uint(s) * subgroup_size < quads)
#define quad_of(s) min(lane + uint(s) * subgroup_size, quads - 1u)

shared float scores[heads_together * span_positions];

#define query_slots ((query_quads + narrowest_lanes - 1u) / narrowest_lanes)
vec4 head_query[4][query_quads];
vec4 head_sums[4][slots];
vec2 head_weight[4];  // maximum and total

// Computes one span of `count` positions from slot `first` on, of which the token sees those from `seen` on, into
// span_sums and span_weight.
vec4 span_sums[4][slots];
vec2 span_weight[4];

#define is_seen(position) ((position) < count && (attention_window == 0u || (position) >= seen))
void attend_span(uint kv_head, uint first, uint count, uint seen) {
  float greatest[4];
  each_head(h) greatest[h] = minus_infinity;
  for (uint base = 0u; base < count; base += subgroup_size) {
    uint own = base + lane, index = key_index(kv_head, cache_row(first + min(own, count - 1u)), 0u);
    precise vec4 a[4][4];
    each_head(h) LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) a[h][k] = vec4(0.0);
    if (is_seen(own)) LATER_UNROLLED for (uint c = 0u; c < chunks; ++c) {
        key_chunk key = widened_key(load_cached_key(keys, index + 8u * c));
        each_head(h) {
          precise vec4 low = head_query[h][2u * c] * key.low, high = head_query[h][2u * c + 1u] * key.high;
          a[h][c & 3u] = a[h][c & 3u] + low;
          a[h][c & 3u] = a[h][c & 3u] + high;
        }
      }
    each_head(h) {
      precise float part[4];
      LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) part[k] = (a[h][k].x + a[h][k].y) + (a[h][k].z + a[h][k].w);
      precise float sum = (part[0] + part[1]) + (part[2] + part[3]);
      float score = scaled_score(sum);
      if (is_seen(own)) {
        scores[h * span_positions + own] = score;
        greatest[h] = max(greatest[h], score);
      }
    }
  }
  each_head(h) greatest[h] = subgroup_max(greatest[h]);
  subgroupMemoryBarrier();

  precise float total[4], group_total[4], pair_total[4], low_total[4];
  vec4 pair[4][slots], low_pair[4][slots];
  each_head(h) {
    total[h] = low_total[h] = 0.0;
    each_slot(s) span_sums[h][s] = low_pair[h][s] = vec4(0.0);
  }
  for (uint group = 0u; 64u * group < count; ++group) {
    precise vec4 group_sums[4][slots];
    each_head(h) {
      group_total[h] = 0.0;
      each_slot(s) group_sums[h][s] = vec4(0.0);
    }
    for (uint octet = attention_window == 0u ? 64u * group : max(64u * group, seen & ~7u);
         octet < min(64u * group + 64u, count); octet += 8u) {
      // Probabilities of the octet: in the lanes, then in each of them.
      float p[4][8];
      each_head(h) {
        float own[2];
        LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) {
          uint position = octet + (lane & 7u) + 4u * k;
          precise float below = scores[h * span_positions + min(position, count - 1u)] - greatest[h];
          own[k] = is_seen(position) ? canonical_exp(below) : 0.0;
        }
        LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) p[h][i] =
            subgroup_size == 4u ? subgroupShuffle(own[i / 4u], i & 3u) : subgroupShuffle(own[0], i);
        precise float sum = group_total[h] + octet_total(vec4(p[h][0], p[h][1], p[h][2], p[h][3]),
                                                         vec4(p[h][4], p[h][5], p[h][6], p[h][7]));
        group_total[h] = sum;
      }
      precise vec4 a[4][slots];
      each_head(h) each_slot(s) a[h][s] = vec4(0.0);
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (is_seen(octet + i)) {
        uint row = (kv_head * value_rows + cache_row(first + octet + i)) * quads;
        each_slot(s) {
          vec4 value = widened_cached_value(load_cached_value(values, row + quad_of(s)));
          each_head(h) {
            precise vec4 product = p[h][i] * value;
            a[h][s] = a[h][s] + product;
          }
        }
      }
      each_head(h) each_slot(s) group_sums[h][s] = group_sums[h][s] + a[h][s];
    }
    // (g0 + g1) + (g2 + g3); a group without octets counts as 0.
    bool odd = (group & 1u) != 0u;
    each_head(h) {
      precise float both = pair_total[h] + group_total[h];
      pair_total[h] = odd ? both : group_total[h];
      if (group < 2u) low_total[h] = pair_total[h];
      precise float all = low_total[h] + pair_total[h];
      total[h] = group < 2u ? pair_total[h] : all;
      each_slot(s) {
        precise vec4 both_sums = pair[h][s] + group_sums[h][s];
        pair[h][s] = odd ? both_sums : group_sums[h][s];
        if (group < 2u) low_pair[h][s] = pair[h][s];
        precise vec4 all_sums = low_pair[h][s] + pair[h][s];
        span_sums[h][s] = group < 2u ? pair[h][s] : all_sums;
      }
    }
  }
  each_head(h) span_weight[h] = vec2(greatest[h], total[h]);
}

// Computes a token's heads from first_head on. The token sees positions `start` to `count` - 1.
void attend(uint token, uint first_head, uint start, uint count) {
  uint kv_head = first_head / (heads / kv_heads), row = (token * heads + first_head) * quads,
       query_row = (token * heads + first_head) * query_quads;
  each_head(h) {  // each quad is read once
    vec4 own[query_slots];
    LATER_UNROLLED for (uint s = 0u; s < query_slots; ++s) if (uint(s) * subgroup_size < query_quads) own[s] =
        float_quad(query, query_row + h * query_quads + min(lane + uint(s) * subgroup_size, query_quads - 1u));
    LATER_UNROLLED for (uint i = 0u; i < query_quads; ++i) head_query[h][i] =
        subgroupShuffle(own[i / subgroup_size], i % subgroup_size);
  }
  uint begin = start & ~(span_positions - 1u);
  for (uint first = begin; first < count; first += span_positions) {
    attend_span(kv_head, slot_of_span(first), min(count - first, span_positions), max(start, first) - first);
    each_head(h) {
      vec2 f = vec2(0.0);
      if (first == begin) head_weight[h] = span_weight[h];
      else f = merge_factors(head_weight[h], span_weight[h]);
      each_slot(s) head_sums[h][s] =
          first == begin ? span_sums[h][s] : merged_sums(head_sums[h][s], span_sums[h][s], f);
    }
  }
  each_head(h) each_slot(s) if (lane + s * subgroup_size < quads) {
#ifdef attention_sinks
    vec4 result = attended(head_sums[h][s], head_weight[h], attention_sinks != 0u ? sinks.at[first_head + h] : 0.0);
#else
    precise vec4 result = head_sums[h][s] / head_weight[h].y;
#endif
    store_floats(output_, row + h * quads + quad_of(s), result);
  }
}

#endif
