// SPDX-License-Identifier: MIT
// Sums and products in registers only: benchmarks warm up a device with it, and its time shows whether the device runs
// at its full clock. Not part of any plan.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"

layout(constant_id = 0) const uint workgroup_size = 256;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push {
  Words output_;
  uint rounds;
};

// A round is 64 multiplications and additions; their end is used, so that no compiler leaves them out.
void main() {
  float sums[8], factor = 1.0 + 1e-7 * float(gl_LocalInvocationID.x);
  [[unroll]] for (uint k = 0u; k < 8u; ++k)
    sums[k] = float(k + gl_WorkGroupID.x);
  for (uint i = 0u; i < rounds; ++i) [[unroll]]
    for (uint k = 0u; k < 64u; ++k) sums[k % 8u] = fma(sums[k % 8u], factor, 0.5);
  float all = 0.0;
  [[unroll]] for (uint k = 0u; k < 8u; ++k)
    all += sums[k];
  if (floatBitsToUint(all) == 0x9e3779b9u) output_.at[0] = 1u;
}
