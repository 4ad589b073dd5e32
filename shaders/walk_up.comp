// SPDX-License-Identifier: MIT
// Values of the features of a sparse walk: their up vectors times the normalised activations, gated by their scores. A
// subgroup has one feature, all of whose loads are in flight together.
// variant: walk_up -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 1024;
layout(constant_id = 3) const uint count = 64;
layout(constant_id = 4) const uint weight_element = 0;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width columns
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, choice, output_, state; };

#include "dense.glsl"

// The activation. C++ replaces the instruction that mod() becomes by it (kernels/splice.hpp).
float gated(float g, float up) { return mod(g, up); }

void main() {
  find_lane();
  if (state.at[state_count] == 0u) return;
  float largest, r = inverse_rms(input_, 0u, norm_weight, eps, largest);
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, 0u, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i))
        share_y(norm_quad(chunk, i), normalised(i, r));
  }
  workgroup_barrier();

  for (uint at = gl_WorkGroupID.x * subgroups + subgroup_index; at < count; at += gl_NumWorkGroups.x * subgroups) {
    uvec2 chosen = word_pair(choice, at);
    float value = gated(uintBitsToFloat(chosen.y), one_row(min(chosen.x, rows - 1u)));
    if (lane == 0u) Floats(output_).at[at] = value;
  }
}
