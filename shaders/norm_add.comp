// SPDX-License-Identifier: MIT
// A token's normalised activations, stored or added to the residual stream. If added, a bias may replace the norm, and
// the sum may be multiplied by a factor. If stored, they may be centred first and have a bias added after the norm. One
// workgroup per head (x), as wide as the norm, of a token (y).
// variant: norm_add -DADDS=1 -DWIDE_LOADS=0
// variant: rms_norm -DADDS=0 -DWIDE_LOADS=0
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
layout(constant_id = 2) const float eps = 1e-6;
layout(constant_id = 3) const uint subgroup_width = 0;
#if ADDS
layout(constant_id = 4) const uint parts = 1;
layout(constant_id = 5) const uint biased = 0;
layout(constant_id = 6) const uint scaled = 0;  // by the number after the norm's weight
#else
layout(constant_id = 4) const uint centered = 0;  // 1: and a bias is added, 2: without a bias
#endif
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#if ADDS
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, state; };
// If the input is several adjacent vectors, the norm reads their sum, added pairwise, lower + higher. No array, which
// drivers would put into memory.
vec4 pair_of(Words from, uint quad, uint i, uint higher) {
  precise vec4 sum = float_quad(from, i * (width / 4u) + quad) + float_quad(from, higher * (width / 4u) + quad);
  return sum;
}
vec4 summed_quad(Words from, uint quad) {
  if (parts == 1u) return float_quad(from, quad);
  if (parts == 2u) return pair_of(from, quad, 0u, 1u);
  if (parts == 4u) {
    precise vec4 sum = pair_of(from, quad, 0u, 2u) + pair_of(from, quad, 1u, 3u);
    return sum;
  }
  precise vec4 even = pair_of(from, quad, 0u, 4u) + pair_of(from, quad, 2u, 6u),
               odd = pair_of(from, quad, 1u, 5u) + pair_of(from, quad, 3u, 7u), sum = even + odd;
  return sum;
}
#define input_quad summed_quad
#else
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, state, bias; };
// The mean of the token's activations: quads v, v + 32, ... one after the other, then all 32 sums one after the other.
shared float sums_of_quads[32];
float mean = 0.0;
void find_mean(uint first) {
  for (uint v = gl_LocalInvocationIndex; v < 32u; v += workgroup_size) {
    precise float sum = 0.0;
    for (uint quad = v; quad < width / 4u; quad += 32u) {
      vec4 x = float_quad(input_, first + quad);
      sum = sum + ((x.x + x.y) + (x.z + x.w));
    }
    sums_of_quads[v] = sum;
  }
  workgroup_barrier();
  precise float all = 0.0;
  for (uint v = 0u; v < 32u; ++v) all = all + sums_of_quads[v];
  precise float of_one = all / float(width);
  mean = of_one;
}
vec4 centered_quad(Words from, uint quad) {
  if (centered == 0u) return float_quad(from, quad);
  precise vec4 x = float_quad(from, quad) - mean;
  return x;
}
#define input_quad centered_quad
#endif
#define norm_width width
#if !ADDS  // each head has weights of its own
#define weight_quad(weight, chunk, s) chunk_quad(weight, gl_WorkGroupID.x*(width / 4u), chunk, s)
#endif
#include "norm.glsl"

void main() {
  find_lane();
  uint token = gl_WorkGroupID.y;
  bool wanted = token < state.at[state_count];
  if (subgroup_width < 32u && !wanted)
    return;  // GPUs: after a return the driver diverges lanes, and everything waits for the count
  uint first = (token * gl_NumWorkGroups.x + gl_WorkGroupID.x) * norm_quads;
#if ADDS
  if (biased != 0u) {
    for (uint quad = gl_LocalInvocationIndex; wanted && quad < width / 4u; quad += workgroup_size) {
      precise vec4 y = input_quad(input_, first + quad) + float_quad(norm_weight, quad);
      y = float_quad(output_, first + quad) + y;
      FloatQuads(output_).at[first + quad] = y;
    }
    return;
  }
  vec4 stream[8];  // in flight together with the norm's loads
  if (norm_chunks == 1u) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) stream[i] = chunk_quad(output_, first, 0u, i);
#else
  if (centered != 0u) find_mean(first);
#endif
  float largest, r = inverse_rms(input_, first, norm_weight, eps, largest);
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, first, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (wanted && owns_quad(chunk, i)) {
      precise vec4 y = normalised(i, r);
#if ADDS
      y = (norm_chunks == 1u ? stream[i] : float_quad(output_, first + norm_quad(chunk, i))) + y;
      if (scaled != 0u) y = y * uintBitsToFloat(norm_weight.at[width]);
#else
      if (centered == 1u) y = y + float_quad(bias, norm_quad(chunk, i));
#endif
      FloatQuads(output_).at[first + norm_quad(chunk, i)] = y;
    }
  }
}
