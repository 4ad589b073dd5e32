// SPDX-License-Identifier: MIT
// The language model head: rows of dense weights times the normalised activations of a token (y). A subgroup computes
// four rows at once.
// variant: dense_matmul -DWIDE_LOADS=0
// variant: dense_matmul_cpu -DWIDE_LOADS=1
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
layout(constant_id = 2) const uint rows = 4096;
layout(constant_id = 3) const uint weight_element = 0;
layout(constant_id = 4) const float eps = 1e-5;
layout(constant_id = 5) const uint keeps_firsts = 0;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width columns
#include "norm.glsl"

#if WIDE_LOADS
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, output_, state, firsts; }
pushed;
Words input_, norm_weight, weight, output_, state, firsts;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  weight = pushed.weight;
  output_ = pushed.output_;
  state = pushed.state;
  firsts = pushed.firsts;
}
#else
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, output_, state, firsts; };
#define take_pushed()
#endif

#include "dense.glsl"
#include "first_token.glsl"

void main() {
  take_pushed();
  find_lane();
  uint token = gl_WorkGroupID.y;
  if (token >= state.at[state_count]) return;
  uint first = token * norm_quads;
  float largest, r = inverse_rms(input_, first, norm_weight, eps, largest);
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, first, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i))
        share_y(norm_quad(chunk, i), normalised(i, r));
  }
  workgroup_barrier();

  uvec2 first_here = uvec2(0u);
#if WIDE_LOADS  // on a CPU neighbouring rows, which its prefetchers follow
  uint groups = (rows + 3u) / 4u, sharers = gl_NumWorkGroups.x * gl_NumSubgroups,
       share = (groups + sharers - 1u) / sharers;
  uint begin = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * share, end = min(begin + share, groups);
  for (uint group = begin; group < end; ++group) {
#else
  uint groups = (rows + 3u) / 4u, stride = gl_NumWorkGroups.x * gl_NumSubgroups;
  for (uint group = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; group < groups; group += stride) {
#endif
    float sum = four_rows(group);
    uint row = row_of(group);
    if (stores_row(row)) Floats(output_).at[token * rows + row] = sum;
    if (keeps_firsts != 0u) first_here = earlier(first_here, row < rows ? uvec2(key_of(sum), ~row) : uvec2(0u));
  }
  if (keeps_firsts != 0u) {
    first_here = first_of(first_here);
    if (gl_LocalInvocationIndex == 0u) WordPairs(firsts).at[token * gl_NumWorkGroups.x + gl_WorkGroupID.x] = first_here;
  }
}
