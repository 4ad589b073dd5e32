// SPDX-License-Identifier: MIT
// What features write: their values times their down vectors, read by features. A workgroup does 32 rows of the output, 128 slots share the features.
// variant: walk_sum -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 1024;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint count = 64;
layout(constant_id = 4) const uint weight_element = 0;
layout(constant_id = 5) const uint listed = 1;
layout(constant_id = 6) const uint epilogue = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, choice, weight, output_, state; };

const uint slots = 128u, quads = 8u;  // kernels::walk_sum_slots, walk_sum_rows / 4
const uint together = 8u;             // loads on their way at once
shared vec4 sums[slots * quads];

void main() {
  if (state.at[state_count] == 0u) return;
  uint me = gl_LocalInvocationIndex, row_quads = rows / 4u;
  for (uint item = me; item < slots * quads; item += workgroup_size) {
    uint slot = item / quads, at = gl_WorkGroupID.x * quads + item % quads, quad = min(at, row_quads - 1u);
    precise vec4 sum = vec4(0.0);
    for (uint i = slot; i < count; i += slots * together) {
      vec4 w[together];
      float value[together];
      [[dont_unroll]] for (uint k = 0u; k < together; ++k) {
        uint index = i + k * slots, inside = min(index, count - 1u);
        uint feature = listed != 0u ? min(choice.at[2u * inside], columns - 1u) : inside;
        value[k] = Floats(input_).at[inside];
        w[k] = load4(weight, weight_element, feature * row_quads + quad);
      }
      [[dont_unroll]] for (uint k = 0u; k < together; ++k) {
        precise vec4 product = value[k] * w[k], more = sum + product;
        sum = i + k * slots < count ? more : sum;
      }
    }
    sums[item] = sum;
  }
  barrier();
  for (uint step = slots / 2u; step != 0u; step >>= 1u) {
    for (uint item = me; item < step * quads; item += workgroup_size) {
      precise vec4 sum = sums[item] + sums[item + step * quads];
      sums[item] = sum;
    }
    barrier();
  }
  for (uint item = me; item < quads; item += workgroup_size) {
    uint at = gl_WorkGroupID.x * quads + item;
    if (at < row_quads) {
      precise vec4 sum = sums[item];
      if (epilogue == 1u) sum = float_quad(output_, at) + sum;
      FloatQuads(output_).at[at] = sum;
    }
  }
}
