// SPDX-License-Identifier: MIT
// Attention of up to four heads that share keys and values, by a workgroup of four subgroups of 32 per span: for long
// contexts, where reading limits the speed (shaders/attention.comp, heads_together above 1). A subgroup has a group of
// eight octets. For scores, lane = quarter of the channels * 8 + position, and each quarter ends with the scores of one
// head; for values, a lane has four channels, whose sums stay in registers. Loops are kept rolled: code that runs once
// is fetched from memory as slowly as the cache.
#ifndef INTAGLIO_ATTENTION_TOGETHER
#define INTAGLIO_ATTENTION_TOGETHER

#define ONE_BY_ONE [[dependency_infinite]]  // not unrolled (tools/embed_shaders)
const uint sharing = heads / kv_heads, head_groups = (sharing + heads_together - 1u) / heads_together;
const uint octets_at_once = 2u, spans_at_once = 16u, rows_of_quads = (quads + 31u) / 32u;
// In `pool`: scores, then probabilities, by subgroup and head, 16 quads of positions each; queries by head. After their
// use: sums of two groups by head.
const uint queries_at = 256u;

struct together_span {
  uint key, first_row, count;  // index of the first chunk of keys, row of the first position; positions
  bool whole;                  // all of them are seen, and they fill a span
};

// Writes the scores of a subgroup's octets to the pool. @return the greatest score of the lane
float score_octets(together_span at, uint first_octet, uint own_head) {
  uint quarter = lane >> 3, position = lane & 7u;
  bool odd = (quarter & 1u) != 0u, upper = (quarter & 2u) != 0u;
  float greatest = minus_infinity;
  ONE_BY_ONE for (uint o = 0u; o < 8u; o += octets_at_once) {
    precise vec4 a[octets_at_once][4];
    LATER_UNROLLED for (uint i = 0u; i < octets_at_once; ++i) LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) a[i][h] =
        vec4(0.0);
    for (uint first = 0u; first < chunk_rounds; first += rounds_at_once) {
      raw_chunk raw[octets_at_once][rounds_at_once];
      LATER_UNROLLED for (uint i = 0u; i < octets_at_once; ++i) {
        uint octet = first_octet + o + i;
        if (!at.whole) octet = min(octet, (at.count - 1u) / 8u);
        uint from = at.key + (octet * chunks + quarter) * 8u + position;
        LATER_UNROLLED for (uint c = 0u; c < rounds_at_once; ++c) if (first + c < chunk_rounds) raw[i][c] =
            load_cached_key(keys, from + 32u * (first + c));
      }
      LATER_UNROLLED for (uint c = 0u; c < rounds_at_once; ++c) if (first + c < chunk_rounds) {
        key_chunk k[octets_at_once];
        LATER_UNROLLED for (uint i = 0u; i < octets_at_once; ++i) k[i] = widened_key(raw[i][c]);
        LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) {
          uint from = queries_at + h * query_quads + 2u * quarter + 8u * (first + c);
          vec4 q_low = pool[from], q_high = pool[from + 1u];
          LATER_UNROLLED for (uint i = 0u; i < octets_at_once; ++i) {
            precise vec4 low = q_low * k[i].low, high = q_high * k[i].high;
            a[i][h] = a[i][h] + low;
            a[i][h] = a[i][h] + high;
          }
        }
      }
    }
    LATER_UNROLLED for (uint i = 0u; i < octets_at_once; ++i) {
      precise vec4 part;
      LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) part[h] = (a[i][h].x + a[i][h].y) + (a[i][h].z + a[i][h].w);
      precise vec2 pair = (odd ? part.zw : part.xy) + subgroupShuffleXor(odd ? part.xy : part.zw, 8u);
      precise float sum = (upper ? pair.y : pair.x) + subgroupShuffleXor(upper ? pair.x : pair.y, 16u);
      bool sees = at.whole || is_seen((first_octet + o + i) * 8u + position, at.count);
      float its = sees ? scaled_score(sum) : minus_infinity;
      greatest = max(greatest, its);
      pool[own_head * 16u + 2u * (o + i) + (position >> 2)][position & 3u] = its;
    }
  }
  return greatest;
}

// Turns the pool's scores into probabilities. @return their sum over a subgroup's octets
float chances_of_octets(together_span at, uint first_octet, uint own_head, float greatest) {
  uint position = lane & 7u;
  precise float total = 0.0;
  ONE_BY_ONE for (uint o = 0u; o < 8u; ++o) {
    uint index = own_head * 16u + 2u * o + (position >> 2);
    precise float below = pool[index][position & 3u] - greatest;
    bool sees = at.whole || is_seen((first_octet + o) * 8u + position, at.count);
    float p = sees ? canonical_exp(below) : 0.0;
    pool[index][position & 3u] = p;
    precise float sum = p + subgroupShuffleXor(p, 4u);
    sum = sum + subgroupShuffleXor(sum, 2u);
    sum = sum + subgroupShuffleXor(sum, 1u);
    total = total + sum;
  }
  return total;
}

vec4 group_sums[4];  // of a lane's four channels, by head
void sum_octets(together_span at, uint first_octet, uint quad) {
  precise vec4 sum_of[4];
  LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) sum_of[h] = vec4(0.0);
  ONE_BY_ONE for (uint o = 0u; o < 8u; o += octets_at_once) {
    uvec4 raw[octets_at_once * 8u];
    LATER_UNROLLED for (uint r = 0u; r < octets_at_once * 8u; ++r) {
      uint position = (first_octet + o) * 8u + r;
      if (!at.whole) position = max(min(position, at.count - 1u), seen);
      raw[r] = load_cached_value(values, (at.first_row + position) * quads + quad);
    }
    LATER_UNROLLED for (uint i = 0u; i < octets_at_once; ++i) {
      vec4 v[8];
      LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) v[r] = widened_cached_value(raw[8u * i + r]);
      LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) {
        uint from = (subgroup_index * 4u + h) * 16u + 2u * (o + i);
        vec4 p_low = pool[from], p_high = pool[from + 1u];
        precise vec4 a = vec4(0.0);
        LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) {
          precise vec4 product = (r < 4u ? p_low[r & 3u] : p_high[r & 3u]) * v[r];
          a = a + product;
        }
        sum_of[h] = sum_of[h] + a;
      }
    }
  }
  LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) group_sums[h] = sum_of[h];
}

// Every 2 * apart-th subgroup adds the sums of the subgroup `apart` after it to its own, through shared memory.
void hand_over(uint apart) {
  barrier();
  if ((subgroup_index & (2u * apart - 1u)) == apart)
    LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) pool[(subgroup_index / 2u * 4u + h) * 32u + lane] = group_sums[h];
  barrier();
  if ((subgroup_index & (2u * apart - 1u)) == 0u) LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) {
      precise vec4 both = group_sums[h] + pool[((subgroup_index + apart) / 2u * 4u + h) * 32u + lane];
      group_sums[h] = both;
    }
}

// Merges a head's spans in order, by one subgroup; each lane finds the factors of one span.
// @return sums of a lane's four channels; `weight` becomes their maximum and total
vec4 merged_together(uint first, uint spans, uint quad) {
  vec4 merged = vec4(0.0);
  precise float total = 0.0;
  float before = minus_infinity;
  ONE_BY_ONE for (uint span = 0u; span < spans; span += 32u) {
    uint own = min(span + lane, spans - 1u);
    vec2 its = partials.at[(first + own) * (quads + 1u) + quads].xy;
    float greatest = max(before, its.x);
    LATER_UNROLLED for (uint i = 0u; i < 5u; ++i) {
      float lower = subgroupShuffle(greatest, lane - min(lane, 1u << i));
      greatest = max(greatest, lower);
    }
    float lower = subgroupShuffle(greatest, max(lane, 1u) - 1u);  // unconditional: all lanes must reach it
    if (lane == 0u) lower = before;
    precise float old_distance = lower - greatest, new_distance = its.x - greatest;
    bool starts = own == 0u;
    subgroupBarrier();
    vec2 factors = vec2(old_distance, new_distance);
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) factors[i] = canonical_exp(factors[i]);
    pool[subgroup_index * 32u + lane] = vec4(starts ? vec2(0.0, 1.0) : factors, its.y, 0.0);
    subgroupBarrier();
    before = subgroupShuffle(greatest, 31u);
    ONE_BY_ONE for (uint part = 0u; part < 32u && span + part < spans; part += spans_at_once) {
      vec4 later[spans_at_once];
      LATER_UNROLLED for (uint k = 0u; k < spans_at_once; ++k) later[k] =
          partials.at[(first + min(span + part + k, spans - 1u)) * (quads + 1u) + quad];
      LATER_UNROLLED for (uint k = 0u; k < spans_at_once; ++k) if (span + part + k < spans) {
        vec4 f = pool[subgroup_index * 32u + part + k];
        precise float next = total * f.x + f.z * f.y;
        total = next;
        merged = merged_sums(merged, later[k], f.xy);
      }
    }
  }
  weight = vec2(before, total);
  return merged;
}

// Computes one span of a group of heads; the group's last workgroup to finish merges all of its spans.
void attend_together(uint token, uint group, uint start, uint count) {
  uint kv_head = group / head_groups, first_of_group = group % head_groups * heads_together,
       first_head = kv_head * sharing + first_of_group, own_heads = min(heads_together, sharing - first_of_group);
  uint first_span = start / span_positions, spans = (count + span_positions - 1u) / span_positions - first_span,
       split = gl_WorkGroupID.z;
  uint first = (first_span + split) * span_positions, slot = span_slot(first);
  seen = window != 0u && start > first ? start - first : 0u;
  together_span at = together_span(key_index(kv_head, slot, 0u), kv_head * value_rows + slot,
                                   min(count - first, span_positions), false);
  at.whole = at.count == span_positions && seen == 0u;
  uint first_token_head = token * heads + first_head;
  for (uint i = gl_LocalInvocationIndex; i < 4u * query_quads; i += 128u)
    pool[queries_at + i] =
        FloatQuads(query).at[(first_token_head + min(i / query_quads, own_heads - 1u)) * query_quads + i % query_quads];
  barrier();
  uint first_octet = 8u * subgroup_index, head = ((lane >> 2) & 2u) + (lane >> 4);  // of the lane's scores
  uint own_head = subgroup_index * 4u + head;
  float greatest = score_octets(at, first_octet, own_head);
  LATER_UNROLLED for (uint i = 0u; i < 3u; ++i) greatest = max(greatest, subgroupShuffleXor(greatest, 4u >> i));
  if ((lane & 7u) == 0u) maxima[own_head] = greatest;
  barrier();
  greatest = max(max(maxima[head], maxima[4u + head]), max(maxima[8u + head], maxima[12u + head]));
  float total = chances_of_octets(at, first_octet, own_head, greatest);
  if ((lane & 7u) == 0u) octet_totals[own_head] = total;
  if (subgroup_index == 0u && (lane & 7u) == 0u) octet_totals[16u + head] = greatest;
  subgroupBarrier();

  uint first_partial = (first_token_head * splits + split) * (quads + 1u), stride = splits * (quads + 1u);
  ONE_BY_ONE for (uint row = 0u; row < rows_of_quads; ++row) {
    uint quad = min(lane + 32u * row, quads - 1u);
    sum_octets(at, first_octet, quad);
    if (rows_of_quads == 1u) {
      ONE_BY_ONE for (uint apart = 1u; apart < 4u; apart += apart) hand_over(apart);
      if (subgroup_index == 0u && lane < quads)
        LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) if (h < own_heads)
            partials.at[first_partial + h * stride + quad] = group_sums[h];
      continue;
    }
    // The pool's content is read again, so the sums use another buffer, which each subgroup reads for one head.
    if (row != 0u) barrier();
    LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) octet_sums[(subgroup_index * 4u + h) * 32u + lane] = group_sums[h];
    barrier();
    uint own = subgroup_index * 32u + lane;
    precise vec4 sum = (octet_sums[own] + octet_sums[own + 128u]) + (octet_sums[own + 256u] + octet_sums[own + 384u]);
    if (subgroup_index < own_heads && lane + 32u * row < quads)
      partials.at[first_partial + subgroup_index * stride + quad] = sum;
  }
  if (subgroup_index == 0u && lane == 0u) LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) if (h < own_heads) {
      precise float all = (octet_totals[h] + octet_totals[4u + h]) + (octet_totals[8u + h] + octet_totals[12u + h]);
      partials.at[first_partial + h * stride + quads] = vec4(octet_totals[16u + h], all, 0.0, 0.0);
    }
  if (!comes_last(first_token_head, spans)) return;
  uint merges = min(subgroup_index, own_heads - 1u);  // a head's
  ONE_BY_ONE for (uint row = 0u; row < rows_of_quads; ++row) {
    uint quad = min(lane + 32u * row, quads - 1u);
    vec4 merged = merged_together((first_token_head + merges) * splits, spans, quad);
    vec4 result = attended(merged, weight, has_sinks != 0u ? sinks.at[first_head + merges] : 0.0);
    if (lane + 32u * row < quads && merges == subgroup_index)
      FloatQuads(output_).at[(first_token_head + merges) * quads + quad] = result;
  }
}

#endif
