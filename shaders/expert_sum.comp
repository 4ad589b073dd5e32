// SPDX-License-Identifier: MIT
// The weighted sum of the outputs of a token's experts, added to the residual stream or by itself. One workgroup per
// token (y).
// variant: expert_sum -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint experts_used = 2;
layout(constant_id = 3) const uint biased = 0;
layout(constant_id = 4) const uint stores = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, choice, output_, state, bias; };

void main() {
  uint token = gl_WorkGroupID.y, quads = width / 4u;
  if (token >= state.at[state_count]) return;
  for (uint i = gl_LocalInvocationIndex; i < quads; i += workgroup_size) {
    precise vec4 sum = vec4(0.0);
    for (uint j = 0u; j < experts_used; ++j) {
      precise vec4 given = float_quad(input_, (token * experts_used + j) * quads + i);
      if (biased != 0u) given = given + float_quad(bias, choice.at[2u * token * experts_used + j] * quads + i);
      precise vec4 part = given * uintBitsToFloat(choice.at[(2u * token + 1u) * experts_used + j]);
      sum = sum + part;
    }
    precise vec4 all = (stores != 0u ? vec4(0.0) : float_quad(output_, token * quads + i)) + sum;
    FloatQuads(output_).at[token * quads + i] = all;
  }
}
