// SPDX-License-Identifier: MIT
// Activations of a token, normalised or as they are, as halves of a scale of their own: what matmul_chunk multiplies. One workgroup a token (y).
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variant: halves -DWIDE_LOADS=0
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint prologue = 0;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool normalises = prologue == 3u;
const uint norm_width = normalises ? width : 0u;
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, factors, state; };

shared float maxima[workgroup_size / 4u];

void main() {
  find_place();
  uint token = gl_WorkGroupID.y;
  if (token >= state.at[state_count]) return;
  uint first = token * (width / 4u);
  float r = 1.0, unused;
  if (normalises) r = inverse_rms(input_, first, norm_weight, eps, unused);
  uint largest = 0u;  // by its bits, since drivers may take it that no float is infinite or NaN
  for (uint quad = gl_LocalInvocationIndex; quad < width / 4u; quad += workgroup_size) {
    precise vec4 y = float_quad(input_, first + quad);
    if (normalises) y = (y * float_quad(norm_weight, quad)) * r;
    uvec4 bits = floatBitsToUint(y) & 0x7fffffffu;
    largest = max(largest, max(max(bits.x, bits.y), max(bits.z, bits.w)));
  }
  LATER_UNROLLED for (uint i = 0u; i < 6u; ++i)
    if ((32u >> i) < subgroup_size) largest = max(largest, subgroupShuffleXor(largest, 32u >> i));
  if (lane == 0u) maxima[subgroup_index] = uintBitsToFloat(largest);
  workgroup_barrier();
  for (uint g = 0u; g < subgroups; ++g) largest = max(largest, floatBitsToUint(maxima[g]));
  // The largest becomes 2^14 to 2^15.
  uint exponent = clamp(largest >> 23, 15u, 254u);
  float scale_ = uintBitsToFloat((268u - exponent) << 23);
  for (uint quad = gl_LocalInvocationIndex; quad < width / 4u; quad += workgroup_size) {
    precise vec4 y = float_quad(input_, first + quad);
    if (normalises) y = (y * float_quad(norm_weight, quad)) * r;
    precise vec4 scaled = y * scale_;
    WordPairs(output_).at[first + quad] = uvec2(pack_halves(scaled.x, scaled.z), pack_halves(scaled.y, scaled.w));
  }
  if (gl_LocalInvocationIndex == 0u) factors.at[token] = largest < 0x7f800000u ? (exponent - 14u) << 23 : 0x7fc00000u;
}
