// SPDX-License-Identifier: MIT
// The gated half of an FFN for one token, feature by feature: gates as tiles of four, and up vectors of those features alone whose gate is above 0.
// A subgroup does four features; its lanes stride over tiles and words of 16 columns.
// variant: walk_gate_up -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: walk_gate_up_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if INTEGER_DOT
#extension GL_EXT_integer_dot_product : require
#endif
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool quantises = true;
#define norm_width columns
#include "norm.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, up, scales, output_, state, gates; };

#include "quantised_input.glsl"

// 16 codes of one row with as many int8.
int word_sum(uint codes, uvec4 x) {
#if INTEGER_DOT
  int sum = 0;
  LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) sum += dotPacked4x8EXT(int((codes >> (2u * f)) & 0x03030303u), int(x[f]));
  return sum;
#else
  prepared p = prepare(x);
  uint both = 0u;
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) both += ((codes >> (2u * i)) & 0x00030003u) * p.pair[i];
  int low = int(both << 16) >> 16;
  return (int(both) - low) >> 16;
#endif
}

void main() {
  find_place();
  if (state.at[state_count] == 0u) return;
  int activation_sum;
  float factor = quantise_input(activation_sum);
  workgroup_barrier();
  activation_sum = whole_sum(activation_sum);
  float gate_scale = Floats(scales).at[0], up_scale = Floats(scales).at[1];
  bool sound = finite(factor);

  for (uint group = gl_WorkGroupID.x * subgroups + subgroup_index; group < rows / 4u; group += gl_NumWorkGroups.x * subgroups) {
    ivec4 sums = ivec4(0);
    for (uint tile = lane; tile < tiles; tile += subgroup_size) accumulate_one(sums, word_quad(weight, group * tiles + tile), shared_x[tile]);
    sums = subgroup_sum4(sums) - activation_sum;
    precise vec4 gate = vec4(sums) * (factor * gate_scale);
    // A loop of no turns where a feature is off: code behind an `if` runs masked on CPU drivers.
    ivec4 ups = ivec4(0);
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
      bool fires = sums[r] > 0 || !sound;
      uint row = (4u * group + r) * tiles, end = fires ? tiles : 0u;
      int sum = 0;
      for (uint word = lane; word < end; word += subgroup_size) sum += word_sum(up.at[row + word], shared_x[word]);
      ups[r] = sum;
    }
    ups = subgroup_sum4(ups) - activation_sum;
    precise vec4 h = (gate * gate) * (vec4(ups) * (factor * up_scale));
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) h[r] = sums[r] > 0 || !sound ? h[r] : 0.0;
    if (lane == 0u) FloatQuads(output_).at[group] = h;
    if (lane == 0u && uvec2(gates) != uvec2(0u)) FloatQuads(gates).at[group] = gate;
  }
}
