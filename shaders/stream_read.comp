// SPDX-License-Identifier: MIT
// Reads a buffer from end to end and discards it: the reference rate of `intaglio bench`, not part of any plan.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"

layout(constant_id = 0) const uint workgroup_size = 256;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push {
  WordQuads input_;
  Words output_;
  uint rounds;
};

// Each round reads 8 neighbouring blocks of the whole grid; the sum is used, so that no compiler removes the reads.
void main() {
  uint width = gl_NumWorkGroups.x * workgroup_size, at = gl_WorkGroupID.x * workgroup_size + gl_LocalInvocationID.x;
  uvec4 sum = uvec4(0u);
  for (uint i = 0u; i < rounds; ++i) [[unroll]]
    for (uint k = 0u; k < 8u; ++k, at += width) sum ^= input_.at[at];
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9u) output_.at[0] = sum.x;
}
