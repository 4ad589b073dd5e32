// SPDX-License-Identifier: MIT
// Counts the workgroups that run at once, for `intaglio doctor --report`; not part of any plan. Each workgroup counts
// itself and checks for a bounded number of turns whether all have come, so that it ends on any device.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require

layout(constant_id = 0) const uint workgroup_size = 64;
layout(constant_id = 1) const uint shared_words = 1;
layout(local_size_x_id = 0) in;

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Counters { coherent uint at[]; };
layout(push_constant, scalar) uniform Push {
  Counters counters;  // [workgroups that came, workgroups that saw all, a word that keeps the memory in use]
  uint turns;
};
shared uint room[shared_words];

void main() {
  for (uint i = gl_LocalInvocationIndex; i < shared_words; i += workgroup_size) room[i] = i ^ turns;
  barrier();
  if (gl_LocalInvocationIndex != 0u) return;
  uint all = gl_NumWorkGroups.x, seen = atomicAdd(counters.at[0], 1u) + 1u;
  for (uint i = 0u; i < turns && seen < all; ++i) seen = atomicOr(counters.at[0], 0u);
  if (seen >= all) atomicAdd(counters.at[1], 1u);
  if (room[seen % shared_words] == 0x9e3779b9u) counters.at[2] = seen;
}
