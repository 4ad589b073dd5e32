// SPDX-License-Identifier: MIT
// Attention of one head (x) and token (y). A workgroup computes a span of 256 positions and deals its octets of 8 to
// its subgroups in turn: for scores, lane = quarter of the channels * 8 + position; for values, a lane has four
// channels. With `splits` above 1, workgroup z has only the z-th span, and the last workgroup of a head to finish
// merges all spans; else a workgroup computes all spans.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variant: attention -DWIDE_LOADS=0 -DEMULATED=0
// variant: tests/attention_together_emulated -DWIDE_LOADS=0 -DEMULATED=1
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint kv_heads = 1;
layout(constant_id = 3) const uint head_dim = 64;
layout(constant_id = 4) const uint context = 256;
layout(constant_id = 5) const uint cache_element = 0;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(constant_id = 7) const uint splits = 1;
layout(constant_id = 8) const uint heads_together = 1;
layout(constant_id = 9) const float scale = 0.0;
layout(constant_id = 10) const uint window = 0;
layout(constant_id = 11) const uint ring = 0;
layout(constant_id = 12) const uint slot_words = 0;
layout(constant_id = 13) const uint page_size = 0;
layout(constant_id = 14) const uint narrow = 0;
layout(constant_id = 15) const float softcap = 0.0;
layout(constant_id = 16) const uint has_sinks = 0;
layout(constant_id = 17) const uint ahead = 0;
layout(constant_id = 18) const uint value_dim = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define attention_window window
#define attention_ring ring
#define attention_scale scale
#define attention_softcap softcap
#define attention_sinks has_sinks
const uint cached_value_dim_ = value_dim != 0u ? value_dim : head_dim;
#define cached_value_dim cached_value_dim_
#include "attention.glsl"
#include "attention_range.glsl"
#include "coded_cache.glsl"

// Exchanged by workgroups: a row of head_dim sums, maximum, total and two unused words for each token, head and span.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Partials { coherent vec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Counters { coherent uint at[]; };

layout(push_constant, scalar) uniform Push {
  Words query, keys, values, output_, state;
  Partials partials;
  Counters counters;
  Floats sinks;
};
#define PAGED
#include "slots.glsl"

const uint octets_of_span = 32u;
// Channels are summed 128 at a time, 64 where shared memory is narrow.
const uint row_limit = narrow != 0u ? 16u : 32u, row_quads = quads < row_limit ? quads : row_limit;
const uint narrowest = subgroup_width == 0u ? 4u : subgroup_width;
// Whether a workgroup has several heads that share keys and values (attention_together.glsl).
#if EMULATED
const bool together = heads_together > 1u;
#else
const bool together = heads_together > 1u && subgroup_width == 32u && workgroup_size == 128u && splits > 1u;
#endif
shared vec4 octet_sums[together ? quads > 32u ? 512u : 1u : octets_of_span* row_quads];  // of values
shared float octet_totals[octets_of_span];                                               // of probabilities
shared float scores[together ? 1u : span_positions];                                     // probabilities later
shared float maxima[together ? 16u : (workgroup_size + narrowest - 1u) / narrowest];
shared vec4 pool[together ? 256u + 4u * query_quads : 1u];
shared bool came_last;

// Octets of a subgroup, and whether registers hold their values as well as their keys.
#define own_octets ((octets_of_span + subgroups - 1u) / subgroups)
#define resident (own_octets <= 2u && virtual_count == 1u && quads <= row_limit)
#define octet_of(n) (uint(n) * subgroups + subgroup_index)

// If a GPU has subgroups of 32 in a wide workgroup, an invocation is one virtual lane and has one slot of each row of
// channels: that slot is unrolled, so that its numbers stay in registers. Further slots are loops, which drivers
// compile quickly. sum_index(s, r) of an invocation: quad gl_LocalInvocationIndex + s * workgroup_size of the r-th row
// of a head.
#define more_slots(s) for (uint s = 1u; s * workgroup_size < row_quads; ++s)
#define each_row(r) LATER_UNROLLED for (uint r = 0u; r < head_rows; ++r)
#define sum_index(s, row) ((s) + row_limit / 4u * (row))
#define quad_in_row(s) (gl_LocalInvocationIndex + uint(s) * workgroup_size)

// Rows of channels of a head, and rounds in which the four quarters of the virtual lanes load its chunks.
const uint head_rows = (quads + row_limit - 1u) / row_limit, chunk_rounds = (chunks + 3u) / 4u;
// Rounds whose loads are under way together: of wide heads no more than registers hold.
const uint rounds_at_once = chunk_rounds <= 8u ? chunk_rounds : 6u;
vec4 sums[row_limit / 4u * head_rows];
vec2 weight;             // maximum and total
uvec4 raw_values[2][8];  // of the subgroup's octets, if they are resident

// Sums of four quarters of the virtual lanes, for position lane % 8 (subgroups of 4: lane + 4 r).
float sum_of_quarters(float part[8], uint r) {
  precise float h[8] = part;
  if (virtual_count == 8u) return (h[r] + h[r + 2u]) + (h[r + 4u] + h[r + 6u]);
  if (virtual_count == 4u) return (h[0] + h[1]) + (h[2] + h[3]);
  h[0] = h[0] + subgroupShuffleXor(h[0], 8u);
  if (virtual_count == 2u) {
    h[1] = h[1] + subgroupShuffleXor(h[1], 8u);
    return h[0] + h[1];
  }
  h[0] = h[0] + subgroupShuffleXor(h[0], 16u);
  return h[0];
}

// The token sees positions `seen` to `count` - 1 of a span; has_octet: whether an octet has any of them.
uint seen = 0u;
bool has_octet(uint octet, uint octets) { return octet < octets && (window == 0u || octet >= seen / 8u); }
bool is_seen(uint position, uint count) { return position < count && (window == 0u || position >= seen); }

// Index of a span's octet after the cache's first octet or, without pages, after the span's.
uint own_slot, first_of_span;
uint octet_offset(uint octet) { return batched ? pool_offset(own_slot, first_of_span + 8u * octet) / 8u : octet; }
uint row_of(uint position) { return batched ? 8u * octet_offset(position / 8u) + (position & 7u) : position; }

// Values of one octet; a position that is not seen is replaced by the nearest one that is.
uvec4 octet_value(uint first_row, uint octet, uint position, uint count, uint quad) {
  uint at = min(8u * octet + position, count - 1u);
  return load_cached_value(values,
                           (first_row + row_of(window == 0u ? at : max(at, seen))) * quads + min(quad, quads - 1u));
}

// One virtual lane's part of the scores of octets n and n + 1. Also loads the values if they are resident.
vec2 score_parts(uint query_quad, uint key, uint first_row, uint count, uint octets, uint n, uint virtual_index) {
  uint index = virtual_lane + virtual_index * virtual_width, quarter = index >> 3;
  vec2 parts;
  precise vec4 a[2];
  LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) a[i] = vec4(0.0);
  for (uint first = 0u; first < chunk_rounds; first += rounds_at_once) {
    vec4 q[2u * rounds_at_once];
    raw_chunk raw[2][rounds_at_once];
    LATER_UNROLLED for (uint c = 0u; c < rounds_at_once; ++c) {
      uint chunk = min(quarter + 4u * (first + c), chunks - 1u);
      LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) if (has_octet(octet_of(n + i), octets)) raw[i][c] =
          load_cached_key(keys, key + (octet_offset(octet_of(n + i)) * chunks + chunk) * 8u + (index & 7u));
      q[2u * c] = FloatQuads(query).at[query_quad + 2u * chunk];
      q[2u * c + 1u] = FloatQuads(query).at[query_quad + 2u * chunk + 1u];
    }
    if (resident && first == 0u)
      LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) if (has_octet(octet_of(i), octets))
          LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) raw_values[i][r] =
              octet_value(first_row, octet_of(i), r, count, virtual_lane);
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i)
        LATER_UNROLLED for (uint c = 0u; c < rounds_at_once; ++c) if (quarter + 4u * (first + c) < chunks) {
      key_chunk k = widened_key(raw[i][c]);
      precise vec4 low = q[2u * c] * k.low, high = q[2u * c + 1u] * k.high;
      a[i] = a[i] + low;
      a[i] = a[i] + high;
    }
  }
  LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
    precise float sum = (a[i].x + a[i].y) + (a[i].z + a[i].w);
    parts[i] = sum;
  }
  return parts;
}

// One virtual lane's part of an octet's sum of values; i: which of two octets, if they are resident.
void sum_octet(uint first_row, uint count, uint octet, uint i, uint row, vec4 p_low, vec4 p_high, uint virtual_index) {
  uint quad = virtual_lane + virtual_index * virtual_width;
  precise vec4 a = vec4(0.0);
  LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) {
    uvec4 raw = resident ? raw_values[i][r] : octet_value(first_row, octet, r, count, row_limit * row + quad);
    precise vec4 product = (r < 4u ? p_low[r & 3u] : p_high[r & 3u]) * widened_cached_value(raw);
    a = a + product;
  }
  if (quad < row_quads) octet_sums[octet * row_quads + quad] = a;
}

// The span's sum of one slot, from the sums of its octets.
void sum_span(uint s, uint row, uint octets, bool merges, vec2 f) {
  uint at = min(quad_in_row(s), row_quads - 1u);
  precise vec4 group[4];
  LATER_UNROLLED for (uint g = 0u; g < 4u; ++g) {
    group[g] = vec4(0.0);
    LATER_UNROLLED for (uint o = 8u * g; o < 8u * g + 8u; ++o) if (has_octet(o, octets)) group[g] =
        group[g] + octet_sums[o * row_quads + at];
  }
  precise vec4 all = (group[0] + group[1]) + (group[2] + group[3]);
  sums[sum_index(s, row)] = merges ? merged_sums(sums[sum_index(s, row)], all, f) : all;
}

// Adds a span of `count` positions to the totals. first_row: its first position's row among the values; key: index of
// its first chunk of keys.
void attend_span(uint query_quad, uint key, uint first_row, uint count, bool merges) {
  uint octets = (count + 7u) / 8u;
  float greatest = minus_infinity;
  for (uint n = 0u; n < own_octets; n += 2u) {
    float part[2][8];
    vec2 parts = score_parts(query_quad, key, first_row, count, octets, n, 0u);
    part[0][0] = parts.x;
    part[1][0] = parts.y;
    for (uint j = 1u; j < virtual_count; ++j) {
      parts = score_parts(query_quad, key, first_row, count, octets, n, j);
      part[0][j] = parts.x;
      part[1][j] = parts.y;
    }
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i)
        LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) if (r == 0u || virtual_count == 8u) {
      float score = scaled_score(sum_of_quarters(part[i], r));
      uint position = 8u * octet_of(n + i) + (lane & 7u) + 4u * r;
      if (octet_of(n + i) < octets && is_seen(position, count)) {
        greatest = max(greatest, score);
        if (lane < 8u) scores[position] = score;
      }
    }
  }
  greatest = subgroup_max(greatest);
  if (subgroups > 1u) {
    if (lane == 0u) maxima[subgroup_index] = greatest;
    barrier();
    for (uint g = lane; g < subgroups; g += subgroup_size) greatest = max(greatest, maxima[g]);
    greatest = subgroup_max(greatest);
  } else {
    subgroupBarrier();
  }

  // Every subgroup converts the scores of its own octets to probabilities.
  for (uint i = lane; i < 8u * own_octets; i += subgroup_size) {
    uint position = 8u * octet_of(i >> 3) + (i & 7u);
    if (has_octet(octet_of(i >> 3), octets)) {
      precise float below = scores[position] - greatest;
      scores[position] = is_seen(position, count) ? canonical_exp(below) : 0.0;
    }
  }
  subgroupBarrier();

  vec2 f = vec2(0.0);
  each_row(row) {
    if (row != 0u) barrier();  // octet_sums have been read
    for (uint n = 0u; n < own_octets; n += 2u)
      LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) if (has_octet(octet_of(n + i), octets)) {
        uint octet = octet_of(n + i);
        vec4 low = vec4(scores[8u * octet], scores[8u * octet + 1u], scores[8u * octet + 2u], scores[8u * octet + 3u]);
        vec4 high =
            vec4(scores[8u * octet + 4u], scores[8u * octet + 5u], scores[8u * octet + 6u], scores[8u * octet + 7u]);
        if (row == 0u && lane == 0u) octet_totals[octet] = octet_total(low, high);
        sum_octet(first_row, count, octet, i, row, low, high, 0u);
        for (uint j = 1u; j < virtual_count; ++j) sum_octet(first_row, count, octet, i, row, low, high, j);
      }
    barrier();
    if (gl_LocalInvocationIndex < row_quads) {  // invocations that have sums
      if (row == 0u) {
        precise float group[4];
        LATER_UNROLLED for (uint g = 0u; g < 4u; ++g) {
          group[g] = 0.0;
          LATER_UNROLLED for (uint o = 8u * g; o < 8u * g + 8u; ++o) if (has_octet(o, octets)) group[g] =
              group[g] + octet_totals[o];
        }
        precise float total = (group[0] + group[1]) + (group[2] + group[3]);
        if (merges) f = merge_factors(weight, vec2(greatest, total));
        else weight = vec2(greatest, total);
      }
      sum_span(0u, row, octets, merges, f);
      more_slots(s) sum_span(s, row, octets, merges, f);
    }
  }
}

// True in the last workgroup of its head to reach this; the results of the others can then be read. One invocation
// fences for its whole workgroup: fences of the device are slow.
bool comes_last(uint head, uint spans) {
  groupMemoryBarrier();
  barrier();
  if (gl_LocalInvocationIndex == 0u) {
    memoryBarrierBuffer();
    came_last = atomicAdd(counters.at[head], 1u) + 1u == spans;
    if (came_last) atomicExchange(counters.at[head], 0u);
    memoryBarrierBuffer();
  }
  barrier();
  groupMemoryBarrier();
  return came_last;
}

// A quad of a head's spans, merged in order. first: index of the first span's row.
vec4 merged_spans(uint first, uint spans, uint quad) {
  vec4 merged = vec4(0.0);
  for (uint span = 0u; span < spans; span += 8u) {
    vec4 ends[8], later[8];
    LATER_UNROLLED for (uint k = 0u; k < 8u; ++k) if (span + k < spans) {
      uint at = (first + span + k) * (quads + 1u);
      ends[k] = partials.at[at + quads];
      later[k] = partials.at[at + quad];
    }
    LATER_UNROLLED for (uint k = 0u; k < 8u; ++k) if (span + k < spans) {
      if (span + k == 0u) {
        weight = ends[k].xy;
        merged = later[k];
      } else {
        vec2 f = merge_factors(weight, ends[k].xy);
        merged = merged_sums(merged, later[k], f);
      }
    }
  }
  return merged;
}
void merge_spans(uint first, uint spans, uint s, uint row) {
  sums[sum_index(s, row)] = merged_spans(first, spans, min(row_limit * row + quad_in_row(s), quads - 1u));
}

bool has_quad(uint s, uint row) { return quad_in_row(s) < row_quads && row_limit * row + quad_in_row(s) < quads; }

void store_result(uint first_quad, uint s, uint row, float sink) {
  vec4 result = attended(sums[sum_index(s, row)], weight, sink);
  if (has_quad(s, row)) FloatQuads(output_).at[first_quad + row_limit * row + quad_in_row(s)] = result;
}
void store_partial(uint first_quad, uint s, uint row) {
  if (has_quad(s, row)) partials.at[first_quad + row_limit * row + quad_in_row(s)] = sums[sum_index(s, row)];
}

void attend(uint token, uint head, uint start, uint count) {
  uint first_span = start / span_positions, spans = (count + span_positions - 1u) / span_positions - first_span;
  uint split = splits > 1u ? gl_WorkGroupID.z : 0u;
  uint token_head = token * heads + head, kv_head = head / (heads / kv_heads);
  uint end = splits > 1u ? split + 1u : spans;
  for (uint span = split; span < end; ++span) {
    uint first = (first_span + span) * span_positions, slot = batched ? 0u : span_slot(first);
    first_of_span = first;
    seen = window != 0u && start > first ? start - first : 0u;
    attend_span(token_head * query_quads, key_index(kv_head, slot, 0u), kv_head * value_rows + slot,
                min(count - first, span_positions), span != split);
    if (span + 1u < end) barrier();
  }
  if (splits > 1u && spans > 1u) {
    uint index = (token_head * splits + split) * (quads + 1u);
    each_row(row) {
      store_partial(index, 0u, row);
      more_slots(s) store_partial(index, s, row);
    }
    if (gl_LocalInvocationIndex == 0u) partials.at[index + quads] = vec4(weight, 0.0, 0.0);
    if (!comes_last(token_head, spans) || gl_LocalInvocationIndex >= row_quads) return;
    each_row(row) {
      merge_spans(token_head * splits, spans, 0u, row);
      more_slots(s) merge_spans(token_head * splits, spans, s, row);
    }
  }
  float sink = has_sinks != 0u ? sinks.at[head] : 0.0;
  each_row(row) {
    store_result(token_head * quads, 0u, row, sink);
    more_slots(s) store_result(token_head * quads, s, row, sink);
  }
}

#if EMULATED  // subgroups of 32 for tests, through shared memory: all invocations reach the calls together
shared float shuffled_floats[256];
vec2 shuffled(vec2 x, uint from) {
  barrier();
  shuffled_floats[gl_LocalInvocationIndex] = x.x;
  shuffled_floats[gl_LocalInvocationIndex + 128u] = x.y;
  barrier();
  uint at = subgroup_index * 32u + from;
  return vec2(shuffled_floats[at], shuffled_floats[at + 128u]);
}
float shuffled(float x, uint from) { return shuffled(vec2(x), from).x; }
#define subgroupShuffleXor(x, mask) shuffled(x, lane ^ (mask))
#define subgroupShuffle(x, from) shuffled(x, from)
#define subgroupBarrier() barrier()
#endif
#include "attention_together.glsl"

void main() {
  find_lane();
#if EMULATED
  lane = gl_LocalInvocationIndex & 31u;
  subgroup_index = gl_LocalInvocationIndex >> 5;
#endif
  uvec2 now = word_pair(state, 0u);  // position and count
  uint token = gl_WorkGroupID.y;
  if (token >= now.y) return;
  uvec2 range = seen_by(now.x, token, now.y);
  if (batched) {
    own_slot = slot_at(token);
    now = word_pair(state, own_slot / 2u);
    range.y = min(now.x + 1u, limit_of(own_slot));
    range.x = first_seen(range.y);
    if (now.y == 0u || range.y == 0u) return;
  }
  if (splits > 1u && (range.x / span_positions + gl_WorkGroupID.z) * span_positions >= range.y) return;
  if (together) attend_together(token, gl_WorkGroupID.x, range.x, range.y);
  else
    for (uint h = 0u; h < heads_together; ++h) {
      attend(token, gl_WorkGroupID.x * heads_together + h, range.x, range.y);
      if (h + 1u < heads_together) barrier();
    }
}
