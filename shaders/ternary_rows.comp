// SPDX-License-Identifier: MIT
// Products of ternary weights with the int8 activations of one token for llvmpipe, with the bits of ternary_matmul. A
// workgroup of one subgroup computes up to two groups of 4 rows without a loop (unrolled.glsl): a vector of weights is
// the words of neighbouring tiles, one word per row.
// variant: ternary_rows -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint epilogue = 0;
layout(constant_id = 4) const uint head_dim = 64;
layout(constant_id = 5) const uint q_size = 256;
layout(constant_id = 6) const uint kv_size = 64;
layout(constant_id = 7) const uint context = 256;
layout(constant_id = 8) const float rope_theta = 500000.0;
layout(constant_id = 9) const uint cache_element = 0;
layout(constant_id = 10) const uint groups_together = 1;
layout(constant_id = 11) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "unrolled.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, factors, weight, scales, output_, state, keys, values;
  uvec2 binary;
};
#include "epilogue.glsl"

#define MOST 2u  // groups_together
const uint vectors = columns / 4u / vector_width;
const uint parted = 7u;  // tiles whose sums of 16 products, each below 4,096, stay within 16 bits

void main() {
  find_lane();
  uint number;
  const uint groups = rows / 4u;
  uniform_number(min(gl_WorkGroupID.x, groups), groups, binary, number);
  read_epilogue();
  uint count = state.at[state_count];
  uint factor_bits = factors.at[0], activation_sum = factors.at[1];
  Words from[MOST];
  int sums[MOST];
  uint both[MOST];
  LATER_UNROLLED for (uint g = 0u; g < MOST; ++g) {
    from[g] = at_index(weight, min(number * groups_together + g, groups - 1u), columns);
    sums[g] = 0;
    both[g] = 0u;
  }
  LATER_UNROLLED for (uint v = 0u; v < vectors; ++v) {
    // Word f of a tile has activations 4f .. 4f + 3. Bytes 0 and 2, and bytes 1 and 3, become two signed numbers each,
    // the first in the upper 16 bits (ternary.glsl).
    uint x = words_from(input_, v * vector_width) ^ 0x80808080u;
    x = x << 16 | x >> 16;
    uint even = (x & 0x00ff00ffu) - 0x00800080u, odd = ((x >> 8) & 0x00ff00ffu) - 0x00800080u;
    uint pair[8];
    LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) {
      pair[f] = lane_of(even, (vector_lane & ~3u) + f);
      pair[f + 4u] = lane_of(odd, (vector_lane & ~3u) + f);
    }
    LATER_UNROLLED for (uint g = 0u; g < groups_together; ++g) {
      uint codes = words_from(from[g], v * vector_width);
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) both[g] += ((codes >> (2u * i)) & 0x00030003u) * pair[i];
      if (v % parted == parted - 1u || v + 1u == vectors) {
        int low = int(both[g] << 16) >> 16;
        sums[g] += (int(both[g]) - low) >> 16;
        both[g] = 0u;
      }
    }
  }
  LATER_UNROLLED for (uint g = 0u; g < MOST; ++g) {
    if (vector_width >= 8u) sums[g] += int(lane_of(uint(sums[g]), vector_lane ^ 4u));
    if (vector_width >= 16u) sums[g] += int(lane_of(uint(sums[g]), vector_lane ^ 8u));
  }
  // Row r of group g is in lane 4g + r; with four lanes the groups are finished one after the other.
  LATER_UNROLLED for (uint g = 0u; g < MOST; ++g) if (vector_width == 4u || g == 0u) {
    int own = vector_width == 4u ? sums[g] : (vector_lane & 4u) == 0u ? sums[0] : sums[1];
    ivec4 four;
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) four[r] = int(lane_of(uint(own), (vector_lane & ~3u) + r));
    uint index = g + gl_SubgroupInvocationID / 4u, group = number * groups_together + index;
    if (count != 0u && (gl_SubgroupInvocationID & 3u) == 0u && gl_SubgroupInvocationID < vector_width &&
        index < groups_together && group < groups) {
      precise vec4 y = vec4(four - int(activation_sum)) * (uintBitsToFloat(factor_bits) * row_scales(group));
      finish(0u, group, y);
    }
  }
}
