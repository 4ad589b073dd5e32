// SPDX-License-Identifier: MIT
// Causal attention of one head (x) and token (y) over the cache, in blocks of 32 positions that are merged in order. Subgroups of a
// workgroup compute different blocks of a round; every one merges the round for itself, so the bits do not depend on their number.
// variant: attention -DWIDE_LOADS=0
// variant: attention_cpu -DWIDE_LOADS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
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
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"

layout(push_constant, scalar) uniform Push { Words query, keys, values, output_, state; };

const uint block_positions = 32u;
const uint quads = head_dim / 4u;
// No subgroup is narrower than 4.
const uint narrowest = subgroup_width == 0u ? 4u : subgroup_width;
const uint most_subgroups = (workgroup_size + narrowest - 1u) / narrowest;
shared vec4 round_sums[most_subgroups * quads];
shared vec2 round_weights[most_subgroups];  // maximum and total of each block

// Channels of an invocation, four to a slot: slot j + virtual_count * k holds those of virtual lane j in the k-th 128 channels.
// Which slots are in use follows from constants; drivers that do not jump over idle lanes' code depend on that.
#define used(s) ((s) * virtual_width < quads)
#define each_slot(s) LATER_UNROLLED for (uint s = 0u; s < 16u; ++s) if (used(s))
// The last slot's idle lanes repeat the last channels and are never stored.
#define channel_quad(s) (virtual_lane + (s) * virtual_width)
#define quad_of(s) min(channel_quad(s), quads - 1u)

#define minus_infinity uintBitsToFloat(0xff800000u)

vec4 q[16];      // query
vec4 sums[16];   // of values, merged
vec4 block[16];  // of one block
float maximum, total;

vec4 cached(Words cache, uint row, uint quad) {
  if (cache_element == element_f32) return float_quad(cache, row * quads + quad);
  uvec2 words = word_pair(cache, row * quads + quad);
  return vec4(halves(words.x), halves(words.y));
}

// Scores of four neighbouring positions, the last one instead of those past it; those of position r are in quarter r of the lanes.
float four_scores(uint row, uint last_row) {
  vec4 four = vec4(0.0);
  for (uint r = 0u; r < 4u; ++r) {
    precise vec4 a[16];
    LATER_UNROLLED for (uint s = 0u; s < 16u; ++s) {
      a[s] = vec4(0.0);
      if (used(s)) {
        precise vec4 products = q[s] * cached(keys, min(row + r, last_row), quad_of(s));
        a[s] = channel_quad(s) < quads ? products : vec4(0.0);
      }
    }
    // The second 128 channels, wherever they are.
    if (virtual_count == 8u) LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) a[j] = a[j] + a[j + 8u];
    if (virtual_count == 4u) LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) a[j] = a[j] + a[j + 4u];
    if (virtual_count == 2u) LATER_UNROLLED for (uint j = 0u; j < 2u; ++j) a[j] = a[j] + a[j + 2u];
    if (virtual_count == 1u) a[0] = a[0] + a[1];
    precise float part[8];
    LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) part[j] = (a[j].x + a[j].y) + (a[j].z + a[j].w);
    four = vec4(four.yzw, fold_virtual(part));
  }
  precise float score = virtual_sum4(four) * (1.0 / sqrt(float(head_dim)));
  return score;
}

// One block: its maximum and total, and in `block` its sums of values. first_row: row of the cache where it starts.
vec2 compute_block(uint first_row, uint count) {
  // Position 4 i + r is in slot i / lane_quarter of lane r * lane_quarter + i % lane_quarter.
  float score[8];
  LATER_UNROLLED for (uint c = 0u; c < 8u; ++c) score[c] = minus_infinity;
  float greatest = minus_infinity;
  uint part = lane & (lane_quarter - 1u), quarter = (lane & 31u) / lane_quarter;
  for (uint i = 0u; 4u * i < count; ++i) {
    float s = four_scores(first_row + 4u * i, first_row + count - 1u);
    if (part == i % lane_quarter && 4u * i + quarter < count)
      LATER_UNROLLED for (uint c = 0u; c < 8u; ++c)
        if (c * lane_quarter < 8u && c == i / lane_quarter) score[c] = s;
  }
  LATER_UNROLLED for (uint c = 0u; c < 8u; ++c) greatest = max(greatest, score[c]);
  greatest = subgroup_max(greatest);
  LATER_UNROLLED for (uint c = 0u; c < 8u; ++c)
    if (c * lane_quarter < 8u) {
      precise float below = score[c] - greatest;
      score[c] = canonical_exp(below);
    }
  precise float sum = 0.0;
  LATER_UNROLLED for (uint s = 0u; s < 16u; ++s) block[s] = vec4(0.0);
  for (uint i = 0u; 4u * i < count; ++i) {
    float four = score[0];
    LATER_UNROLLED for (uint c = 1u; c < 8u; ++c)
      if (c * lane_quarter < 8u && c == i / lane_quarter) four = score[c];
    for (uint r = 0u; r < min(4u, count - 4u * i); ++r) {
      float p = subgroupShuffle(four, r * lane_quarter + i % lane_quarter);
      sum = sum + p;
      each_slot(s) {
        precise vec4 products = p * cached(values, first_row + 4u * i + r, quad_of(s));
        precise vec4 added = block[s] + products;
        block[s] = added;
      }
    }
  }
  return vec2(greatest, sum);
}

// Merges `block` with the blocks before it; the first finds factors 0 and 1.
void merge(vec2 weight) {
  float merged = max(maximum, weight.x);
  precise float old_distance = maximum - merged, new_distance = weight.x - merged;
  float old_factor = canonical_exp(old_distance), new_factor = canonical_exp(new_distance);
  precise float merged_total = total * old_factor + weight.y * new_factor;
  each_slot(s) {
    precise vec4 merged_sums = sums[s] * old_factor + block[s] * new_factor;
    sums[s] = merged_sums;
  }
  total = merged_total;
  maximum = merged;
}

void main() {
  find_place();
  uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  if (token >= state.at[state_count]) return;
  uint count = min(state.at[state_position] + token + 1u, context);
  uint blocks = (count + block_positions - 1u) / block_positions;
  uint query_quad = (token * heads + head) * quads, cache_row = head / (heads / kv_heads) * context;
  each_slot(s) q[s] = FloatQuads(query).at[query_quad + quad_of(s)];
  maximum = minus_infinity;
  total = 0.0;
  LATER_UNROLLED for (uint s = 0u; s < 16u; ++s) sums[s] = vec4(0.0);

  bool several = workgroup_size > subgroup_size;
  for (uint round = 0u; round < blocks; round += gl_NumSubgroups) {
    uint own = round + gl_SubgroupID;
    vec2 weight = vec2(0.0);
    if (own < blocks) {
      uint start = own * block_positions;
      weight = compute_block(cache_row + start, min(count - start, block_positions));
    }
    if (several) {
      each_slot(s) if (channel_quad(s) < quads) round_sums[gl_SubgroupID * quads + quad_of(s)] = block[s];
      if (lane == 0u) round_weights[gl_SubgroupID] = weight;
      barrier();
    }
    for (uint g = 0u; g < min(gl_NumSubgroups, blocks - round); ++g) {
      if (several) {
        each_slot(s) block[s] = round_sums[g * quads + quad_of(s)];
        weight = round_weights[g];
      }
      merge(weight);
    }
    if (several) barrier();
  }
  if (gl_SubgroupID == 0u)
    each_slot(s) if (channel_quad(s) < quads) {
      precise vec4 result = sums[s] / total;
      FloatQuads(output_).at[query_quad + quad_of(s)] = result;
    }
}
