// SPDX-License-Identifier: MIT
// Selects the features of a sparse walk: those of the `count` gate scores of the largest size. One workgroup.
// variant: walk_select -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 1024;
layout(constant_id = 2) const uint count = 64;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, choice, state; };

#include "largest.glsl"

uint kept[keeps ? stretch : 1u];  // their loads are in flight together
uint bits_of(uint j, uint feature) { return keeps ? kept[keeps ? j : 0u] : input_.at[min(feature, columns - 1u)]; }
uint size_of(uint j, uint feature) { return bits_of(j, feature) & 0x7fffffffu; }
void take(uint j, uint feature, uint rank) { WordPairs(choice).at[rank] = uvec2(feature, bits_of(j, feature)); }

void main() {
  if (state.at[state_count] == 0u) return;
  uint first = gl_LocalInvocationIndex * stretch;
  if (keeps) [[dont_unroll]]
    for (uint j = 0u; j < stretch; ++j) kept[keeps ? j : 0u] = input_.at[min(first + j, columns - 1u)];
  take_largest();
}
