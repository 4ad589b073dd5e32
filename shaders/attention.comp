// SPDX-License-Identifier: MIT
// Causal attention of one head (x) and token (y). A span of 256 positions is the work of a workgroup, its octets of 8 go round the subgroups:
// lane = quarter of the channels * 8 + position for the scores, then lane = four channels for the values. With `splits` above 1, workgroup z
// has span z alone, and the one of a head that comes last merges them all; else a workgroup goes through all spans.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variant: attention -DWIDE_LOADS=0
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
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "attention.glsl"

// What workgroups tell each other: a row of head_dim sums, maximum, total and two words of nothing for each token, head and span.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Partials { coherent vec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Counters { coherent uint at[]; };

layout(push_constant, scalar) uniform Push { Words query, keys, values, output_, state; Partials partials; Counters counters; };

const uint octets_of_span = 32u;
const uint row_quads = quads < 32u ? quads : 32u;  // channels are summed 128 at a time
const uint narrowest = subgroup_width == 0u ? 4u : subgroup_width;
shared vec4 octet_sums[octets_of_span * row_quads];  // of values
shared float octet_totals[octets_of_span];           // of probabilities
shared float scores[span_positions];                 // then probabilities
shared float maxima[(workgroup_size + narrowest - 1u) / narrowest];
shared bool came_last;

// Octets of a subgroup, and whether their values fit into registers beside their keys.
#define own_octets ((octets_of_span + subgroups - 1u) / subgroups)
#define resident (own_octets <= 2u && virtual_count == 1u && quads <= 32u)
#define octet_of(n) ((n) * subgroups + subgroup_index)

// Loops over virtual lanes and over slots go round once where a GPU's subgroups of 32 stand in a wide workgroup; elsewhere they stay loops,
// since their unrolled code would take drivers long to compile. Slot s + 8 r of an invocation: quad gl_LocalInvocationIndex + s * workgroup_size
// of the r-th 32 of a head.
#define each_slot(s) for (uint s = 0u; s * workgroup_size < row_quads; ++s)
#define quad_in_row(s) (gl_LocalInvocationIndex + (s) * workgroup_size)

vec4 sums[16];
vec2 weight;  // maximum and total

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

// Values of one octet, the last position's row again instead of what lies past it.
uvec4 octet_value(uint first_row, uint octet, uint position, uint count, uint quad) {
  return load_value(values, (first_row + min(8u * octet + position, count - 1u)) * quads + min(quad, quads - 1u));
}

// Takes a span of `count` positions into the totals. first_row: its first position's row among the values; key: index of its first chunk of keys.
void attend_span(uint query_quad, uint key, uint first_row, uint count, bool merges) {
  uint octets = (count + 7u) / 8u;
  uvec4 raw_values[2][8];
  float greatest = minus_infinity;
  for (uint n = 0u; n < own_octets; n += 2u) {
    float part[2][8];
    for (uint j = 0u; j < virtual_count; ++j) {
      uint place = virtual_lane + j * virtual_width, quarter = place >> 3;
      vec4 q[16];
      raw_chunk raw[2][8];
      LATER_UNROLLED for (uint c = 0u; c < 8u; ++c)
        if (4u * c < chunks) {
          uint chunk = min(quarter + 4u * c, chunks - 1u);
          LATER_UNROLLED for (uint i = 0u; i < 2u; ++i)
            if (octet_of(n + i) < octets) raw[i][c] = load_key(keys, key + (octet_of(n + i) * chunks + chunk) * 8u + (place & 7u));
          q[2u * c] = FloatQuads(query).at[query_quad + 2u * chunk];
          q[2u * c + 1u] = FloatQuads(query).at[query_quad + 2u * chunk + 1u];
        }
      if (resident)
        LATER_UNROLLED for (uint i = 0u; i < 2u; ++i)
          if (octet_of(i) < octets)
            LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) raw_values[i][r] = octet_value(first_row, octet_of(i), r, count, virtual_lane);
      LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
        precise vec4 a = vec4(0.0);
        LATER_UNROLLED for (uint c = 0u; c < 8u; ++c)
          if (quarter + 4u * c < chunks) {
            key_chunk k = widened(raw[i][c]);
            precise vec4 low = q[2u * c] * k.low, high = q[2u * c + 1u] * k.high;
            a = a + low;
            a = a + high;
          }
        precise float sum = (a.x + a.y) + (a.z + a.w);
        part[i][j] = sum;
      }
    }
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i)
      LATER_UNROLLED for (uint r = 0u; r < 2u; ++r)
        if (r == 0u || virtual_count == 8u) {
          float score = scaled_score(sum_of_quarters(part[i], r));
          uint position = 8u * octet_of(n + i) + (lane & 7u) + 4u * r;
          if (octet_of(n + i) < octets && position < count) {
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

  // Every subgroup turns the scores of its own octets into probabilities.
  for (uint i = lane; i < 8u * own_octets; i += subgroup_size) {
    uint position = 8u * octet_of(i >> 3) + (i & 7u);
    if (octet_of(i >> 3) < octets) {
      precise float below = scores[position] - greatest;
      scores[position] = position < count ? canonical_exp(below) : 0.0;
    }
  }
  subgroupBarrier();

  vec2 f = vec2(0.0);
  LATER_UNROLLED for (uint round = 0u; round < 2u; ++round)
    if (32u * round < quads) {
      if (round != 0u) barrier();  // octet_sums have been read
      for (uint n = 0u; n < own_octets; n += 2u)
        LATER_UNROLLED for (uint i = 0u; i < 2u; ++i)
          if (octet_of(n + i) < octets) {
            uint octet = octet_of(n + i);
            precise vec4 p[2];
            p[0] = vec4(scores[8u * octet], scores[8u * octet + 1u], scores[8u * octet + 2u], scores[8u * octet + 3u]);
            p[1] = vec4(scores[8u * octet + 4u], scores[8u * octet + 5u], scores[8u * octet + 6u], scores[8u * octet + 7u]);
            if (round == 0u && lane == 0u) octet_totals[octet] = octet_total(p[0], p[1]);
            for (uint j = 0u; j < virtual_count; ++j) {
              uint quad = virtual_lane + j * virtual_width;
              precise vec4 a = vec4(0.0);
              LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) {
                uvec4 raw = resident ? raw_values[i][r] : octet_value(first_row, octet, r, count, 32u * round + quad);
                precise vec4 product = p[r >> 2][r & 3u] * widened_value(raw);
                a = a + product;
              }
              if (quad < row_quads) octet_sums[octet * row_quads + quad] = a;
            }
          }
      barrier();
      if (gl_LocalInvocationIndex < row_quads) {  // who has sums
        if (round == 0u) {
          precise float group[4];
          LATER_UNROLLED for (uint g = 0u; g < 4u; ++g) {
            group[g] = 0.0;
            LATER_UNROLLED for (uint o = 8u * g; o < 8u * g + 8u; ++o)
              if (o < octets) group[g] = group[g] + octet_totals[o];
          }
          precise float total = (group[0] + group[1]) + (group[2] + group[3]);
          if (merges) f = merge_factors(weight, vec2(greatest, total));
          else weight = vec2(greatest, total);
        }
        each_slot(s) {
          uint at = min(quad_in_row(s), row_quads - 1u);
          precise vec4 group[4];
          LATER_UNROLLED for (uint g = 0u; g < 4u; ++g) {
            group[g] = vec4(0.0);
            LATER_UNROLLED for (uint o = 8u * g; o < 8u * g + 8u; ++o)
              if (o < octets) group[g] = group[g] + octet_sums[o * row_quads + at];
          }
          precise vec4 all = (group[0] + group[1]) + (group[2] + group[3]);
          sums[s + 8u * round] = merges ? merged_sums(sums[s + 8u * round], all, f) : all;
        }
      }
    }
}

// True in the workgroup that is the last of its head to come here; what the others wrote before can then be read. One invocation fences for
// all of its workgroup: fences of the device take long.
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

// Merges the spans of a head, in order.
void merge_spans(uint first_row, uint spans) {
  for (uint first = 0u; first < spans; first += 8u) {
    vec4 ends[8];
    vec4 rows[8][16];
    LATER_UNROLLED for (uint k = 0u; k < 8u; ++k)
      if (first + k < spans) {
        uint row = (first_row + first + k) * (quads + 1u);
        ends[k] = partials.at[row + quads];
        LATER_UNROLLED for (uint round = 0u; round < 2u; ++round)
          if (32u * round < quads) each_slot(s) rows[k][s + 8u * round] = partials.at[row + min(32u * round + quad_in_row(s), quads - 1u)];
      }
    LATER_UNROLLED for (uint k = 0u; k < 8u; ++k)
      if (first + k < spans) {
        bool starts = first + k == 0u;
        vec2 f = vec2(0.0);
        if (starts) weight = ends[k].xy;
        else f = merge_factors(weight, ends[k].xy);
        LATER_UNROLLED for (uint round = 0u; round < 2u; ++round)
          if (32u * round < quads) each_slot(s) {
            uint at = s + 8u * round;
            sums[at] = starts ? rows[k][at] : merged_sums(sums[at], rows[k][at], f);
          }
      }
  }
}

void attend(uint token, uint head, uint count) {
  uint spans = (count + span_positions - 1u) / span_positions, split = splits > 1u ? gl_WorkGroupID.z : 0u;
  uint row = token * heads + head, kv_head = head / (heads / kv_heads);
  bool parted = splits > 1u && spans > 1u;
  uint end = splits > 1u ? split + 1u : spans;
  for (uint span = split; span < end; ++span) {
    uint first = span * span_positions;
    attend_span(row * quads, key_index(kv_head, first, 0u), kv_head * context + first, min(count - first, span_positions), span != split);
    if (span + 1u < end) barrier();
  }
  if (parted) {
    uint place = (row * splits + split) * (quads + 1u);
    LATER_UNROLLED for (uint round = 0u; round < 2u; ++round)
      if (32u * round < quads) each_slot(s)
        if (quad_in_row(s) < row_quads && 32u * round + quad_in_row(s) < quads) partials.at[place + 32u * round + quad_in_row(s)] = sums[s + 8u * round];
    if (gl_LocalInvocationIndex == 0u) partials.at[place + quads] = vec4(weight, 0.0, 0.0);
    if (!comes_last(row, spans) || gl_LocalInvocationIndex >= row_quads) return;
    merge_spans(row * splits, spans);
  }
  LATER_UNROLLED for (uint round = 0u; round < 2u; ++round)
    if (32u * round < quads) each_slot(s)
      if (quad_in_row(s) < row_quads && 32u * round + quad_in_row(s) < quads) {
        precise vec4 result = sums[s + 8u * round] / weight.y;
        FloatQuads(output_).at[row * quads + 32u * round + quad_in_row(s)] = result;
      }
}

void main() {
  find_place();
  uvec2 now = word_pair(state, 0u);  // position and count
  uint token = gl_WorkGroupID.y;
  if (token >= now.y) return;
  uint count = min(now.x + token + 1u, context);
  if (splits > 1u && gl_WorkGroupID.z * span_positions >= count) return;
  for (uint h = 0u; h < heads_together; ++h) {
    attend(token, gl_WorkGroupID.x * heads_together + h, count);
    if (h + 1u < heads_together) barrier();
  }
}
