// SPDX-License-Identifier: MIT
// Rows of the embedding table for the tokens of the pass, and the tokens' place in the history. One workgroup a token (y).
// variant: embed -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint vocab_size = 4096;
layout(constant_id = 3) const uint table_element = 0;
layout(constant_id = 4) const uint max_tokens = 1;
layout(constant_id = 5) const uint context = 256;
layout(constant_id = 6) const float scale = 0.0;
layout(constant_id = 7) const uint slot_words = 0;
layout(local_size_x_id = 0) in;

#define LATER_UNROLLED [[dont_unroll]]
#define codec table_element
#define columns width
#include "codec.glsl"

layout(push_constant, scalar) uniform Push { Words table, output_, state; };
#include "slots.glsl"

void main() {
  uint token = gl_WorkGroupID.y;
  uint own = batched ? slot_at(token) : 0u, of_pass = batched ? 0u : token;
  if (token >= (batched ? state.at[state_count] : min(state.at[state_count], max_tokens)) || (batched && state.at[own + state_count] == 0u)) return;
  uint id = state.at[own + state_tokens + of_pass];
  uint position = state.at[own + state_position] + of_pass;
  if (gl_LocalInvocationIndex == 0u && position < context) state.at[own + state_tokens + max_tokens + position] = id;
  uint quads = width / 4u, row = id < vocab_size ? id : 0u;
  for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
    precise vec4 x = load_columns(table, row, quad);
    if (scale != 0.0) x = x * scale;
    FloatQuads(output_).at[token * quads + quad] = x;
  }
}
