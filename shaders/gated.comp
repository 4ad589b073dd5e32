// SPDX-License-Identifier: MIT
// The activation of gates, multiplied by their ups, from the results of two products; or of logits. One workgroup per
// some quads (x) of a token (y).
// variant: gated -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const float scale = 1.0;
layout(constant_id = 3) const uint up_stride = 256;  // floats from one token to the next
layout(constant_id = 4) const uint biased = 0;
layout(constant_id = 5) const uint experts_used = 1;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words gate, up, output_, state, choice, gate_bias, up_bias; };

// C++ replaces the instruction that mod() becomes (kernels/splice.hpp).
float activation(float g, float u) { return mod(g, u); }

void main() {
  uint token = gl_WorkGroupID.y, quads = width / 4u, first = token * quads;
  if (token >= state.at[state_count]) return;
  for (uint i = gl_GlobalInvocationID.x; i < quads; i += gl_NumWorkGroups.x * workgroup_size) {
    vec4 g = float_quad(gate, first + i), u = float_quad(up, token * (up_stride / 4u) + i), y;
    vec4 own = biased == 3u ? float_quad(gate_bias, 0u) : vec4(0.0);  // the layer's parameters
    if (biased == 1u || biased == 2u) {
      uint at = i;
      if (biased == 1u) {  // the biases of the token's experts
        uint part = quads / experts_used;
        at = choice.at[2u * token * experts_used + i / part] * part + i % part;
      }
      precise vec4 biased_gate = g + float_quad(gate_bias, at), biased_up = u + float_quad(up_bias, at);
      g = biased_gate;
      u = biased_up;
    }
    for (uint k = 0u; k < 4u; ++k) {
      float act = activation(scale == 1.0 ? g[k] : g[k] / scale, biased == 3u ? own.w : u[k]);
      precise float scaled = scale * act, sided = (g[k] > 0.0 ? own.x : own.y) * act + own.z * g[k];
      y[k] = biased == 3u ? sided : scaled;
    }
    FloatQuads(output_).at[first + i] = y;
  }
}
