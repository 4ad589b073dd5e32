// SPDX-License-Identifier: MIT
// Normalises a token's activations and rounds them to int8 with one scale. One workgroup a token (y).
// variant: norm_quantize -DWIDE_LOADS=0
// variant: norm_quantize_cpu -DWIDE_LOADS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const float eps = 1e-5;
layout(constant_id = 3) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, factors, state; };

shared int sums[workgroup_size / 4u];

void main() {
  find_place();
  uint token = gl_WorkGroupID.y;
  if (token >= state.at[state_count]) return;
  uint quads = width / 4u, first = token * quads;
  float r = inverse_rms(input_, first, width, eps);
  float m = largest_activation(input_, first, norm_weight, width, r);
  precise float s = 127.0 / m;
  int sum = 0;
  for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
    uint q = quantised(normalised(input_, first, norm_weight, quad, r), s);
    sum += bitfieldExtract(int(q), 0, 8) + bitfieldExtract(int(q), 8, 8) + bitfieldExtract(int(q), 16, 8) + (int(q) >> 24);
    output_.at[first + quad] = q;
  }
  sum = subgroup_sum(sum);
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) sums[gl_SubgroupID] = sum;
    barrier();
    sum = 0;
    for (uint g = 0u; g < gl_NumSubgroups; ++g) sum += sums[g];
  }
  if (gl_LocalInvocationIndex == 0u) {
    precise float factor = m / 127.0;
    WordPairs(factors).at[token] = uvec2(floatBitsToUint(factor), uint(sum));
  }
}
