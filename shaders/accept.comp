// SPDX-License-Identifier: MIT
// Ends a pass over drafted tokens: the token drawn after each token counts as long as the drafts before it were right.
// One invocation.
// variant: accept -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint ring_size = 256;
layout(constant_id = 2) const uint context = 256;
layout(constant_id = 3) const uint max_tokens = 1;
layout(constant_id = 4) const uint draws = 1;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words drawn, state, ring; };

void main() {
  if (gl_LocalInvocationIndex != 0u) return;
  uint count = min(state.at[state_count], draws), position = state.at[state_position],
       generated = state.at[state_generated];
  uint accepted = 0u, token = 0u;
  while (accepted < count && (accepted == 0u || state.at[state_tokens + accepted] == token)) {
    token = drawn.at[accepted];
    ++accepted;
    if (position + accepted < context) state.at[state_tokens + max_tokens + position + accepted] = token;
    ring.at[(generated + accepted - 1u) % ring_size] = token;
  }
  ring.at[ring_size] = accepted;
  if (accepted == 0u) return;
  state.at[state_position] = position + accepted;
  state.at[state_count] = 1u;
  state.at[state_generated] = generated + accepted;
  state.at[state_tokens] = token;
}
