// SPDX-License-Identifier: MIT
// Heads, normalised or unchanged, times an activation of their gates. One workgroup per head (x) of a token (y).
// variant: head_gate -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint head_dim = 64;
layout(constant_id = 3) const uint normed = 0;
layout(constant_id = 4) const float eps = 1e-6;
layout(constant_id = 5) const uint logistic = 0;
layout(constant_id = 6) const uint per_head = 0;
layout(constant_id = 7) const uint adds = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, gate, norm_weight, output_, state; };

void main() {
  uint token = gl_WorkGroupID.y, row = token * heads + gl_WorkGroupID.x, quads = head_dim / 4u;
  if (token >= state.at[state_count]) return;
  precise float r = 1.0;
  if (normed != 0u) {
    precise float sum = 0.0;
    for (uint i = 0u; i < quads; ++i) {
      vec4 x = float_quad(input_, row * quads + i);
      precise vec4 square = x * x;
      precise float four = (square.x + square.y) + (square.z + square.w);
      sum = sum + four;
    }
    precise float mean = sum / float(head_dim) + eps;
    r = 1.0 / sqrt(mean);
  }
  for (uint i = gl_LocalInvocationIndex; i < quads; i += workgroup_size) {
    precise vec4 x = float_quad(input_, row * quads + i);
    if (normed != 0u) {
      precise vec4 weighed = x * float_quad(norm_weight, i);
      x = weighed * r;
    }
    precise vec4 y;
    for (uint c = 0u; c < 4u; ++c) {
      float g = uintBitsToFloat(gate.at[per_head != 0u ? row : row * head_dim + 4u * i + c]);
      precise float below = 1.0 + canonical_exp(-g);
      precise float factor = logistic != 0u ? 1.0 / below : g / below;
      y[c] = x[c] * factor;
    }
    if (adds != 0u) y = float_quad(output_, row * quads + i) + y;
    FloatQuads(output_).at[row * quads + i] = y;
  }
}
