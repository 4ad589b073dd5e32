// SPDX-License-Identifier: MIT
// Normalises a token's activations, or not, and rounds them to int8 with one scale. One workgroup per token (y).
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
layout(constant_id = 4) const uint prologue = 1;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width width
#define normalises (prologue != 4u)
#include "norm.glsl"

#if WIDE_LOADS
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, factors, state; }
pushed;
Words input_, norm_weight, output_, factors, state;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  output_ = pushed.output_;
  factors = pushed.factors;
  state = pushed.state;
}
#else
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, factors, state; };
#define take_pushed()
#endif

void main() {
  take_pushed();
  find_lane();
  uint token = gl_WorkGroupID.y;
  bool wanted = token < state.at[state_count];
  if (subgroup_width < 32u && !wanted)
    return;  // GPUs: after a return the driver diverges lanes, and everything waits for the count
  uint first = token * norm_quads;
  float largest, r = inverse_rms(input_, first, norm_weight, eps, largest), m = largest_activation(largest, r);
  precise float s = 127.0 / m;
  int sum = 0;
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, first, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i)) {
      ivec4 q = quantised(normalised(i, r), s);
      sum += sum_of(q);
      if (wanted) output_.at[first + norm_quad(chunk, i)] = packed(q);
    }
  }
  sum = shared_sum(sum);
  if (subgroups > 1u) barrier();
  sum = whole_sum(sum);
  if (wanted && gl_LocalInvocationIndex == 0u) {
    float factor = grid_step(m, r);
    WordPairs(factors).at[token] = uvec2(floatBitsToUint(factor), uint(sum));
  }
}
