// SPDX-License-Identifier: MIT
// Rows of the embedding table for the tokens of the pass, and the tokens' place in the history. One workgroup a token (y).
// variant: embed -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint vocab_size = 4096;
layout(constant_id = 3) const uint table_element = 0;
layout(constant_id = 4) const uint max_tokens = 1;
layout(constant_id = 5) const uint context = 256;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words table, output_, state; };

void main() {
  uint token = gl_WorkGroupID.y;
  if (token >= min(state.at[state_count], max_tokens)) return;
  uint id = state.at[state_tokens + token];
  uint position = state.at[state_position] + token;
  if (gl_LocalInvocationIndex == 0u && position < context) state.at[state_tokens + max_tokens + position] = id;
  uint quads = width / 4u, row = (id < vocab_size ? id : 0u) * quads;
  for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size)
    FloatQuads(output_).at[token * quads + quad] = load4(table, table_element, row + quad);
}
