// SPDX-License-Identifier: MIT
// The second pass of the screened head (docs/kernels.md, "Screened head"): replaces the bounds by exact logits, with
// the bits of dense_matmul, in the rows that their bounds do not rule out; in all rows if the pass needs them.
// variant: head_rescore -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 4096;
layout(constant_id = 3) const uint weight_element = 0;
layout(constant_id = 4) const uint lowest_count = 1;
layout(constant_id = 5) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "screen.glsl"

layout(push_constant, scalar) uniform Push { Words y, weight, bounds, lowest, firsts, state; };

#include "dense.glsl"
#include "first_token.glsl"

shared float lowest_of[workgroup_size / 4u], all_lowest[lowest_count];
shared uint wanted[workgroup_size], wanted_count;

void read_y() {
  LATER_UNROLLED for (uint start = 0u; start < columns / 4u; start += workgroup_size) {
    uint quad = start + gl_LocalInvocationIndex;
    if (quad < columns / 4u) share_y(quad, float_quad(y, quad));
  }
}

// Takes the largest lower bound of each of `rank` shares of the workgroups, and of these the least: it is at most the
// logit of that rank, since at least `rank` logits reach it.
float least_of_shares(uint rank) {
  for (uint i = gl_LocalInvocationIndex; i < lowest_count; i += workgroup_size) all_lowest[i] = Floats(lowest).at[i];
  workgroup_barrier();
  float least = uintBitsToFloat(0x7f800000u);
  for (uint share = gl_LocalInvocationIndex; share < rank; share += workgroup_size) {
    float most = uintBitsToFloat(0xff800000u);
    for (uint i = share; i < lowest_count; i += rank) most = max(most, all_lowest[i]);
    least = min(least, most);
  }
  least = -subgroup_max(-least);
  workgroup_barrier();
  if (lane == 0u) lowest_of[subgroup_index] = least;
  workgroup_barrier();
  for (uint g = 0u; g < subgroups; ++g) least = min(least, lowest_of[g]);
  return least;
}

// Recomputes the rows that bounds do not rule out: all invocations find them, then each row gets a subgroup.
uvec2 rescore_some(screening s) {
  // The first loads do not wait for each other.
  uint own = gl_WorkGroupID.x * workgroup_size + gl_LocalInvocationIndex;
  float bound = Floats(bounds).at[min(own, rows - 1u)], threshold = uintBitsToFloat(0xff800000u);
  LATER_UNROLLED for (uint start = 0u; start < lowest_count; start += workgroup_size) threshold =
      max(threshold, Floats(lowest).at[min(start + gl_LocalInvocationIndex, lowest_count - 1u)]);
  read_y();
  if (gl_LocalInvocationIndex == 0u) wanted_count = 0u;
  threshold = subgroup_max(threshold);
  if (lane == 0u) lowest_of[subgroup_index] = threshold;
  workgroup_barrier();
  if (s.rank > 1u) threshold = least_of_shares(s.rank);
  else
    for (uint g = 0u; g < subgroups; ++g) threshold = max(threshold, lowest_of[g]);
  threshold -= s.reach;
  uint least_key = key_of(threshold - abs(threshold) * 1e-6);
  uvec2 first_here = uvec2(0u);
  for (uint start = gl_WorkGroupID.x * workgroup_size; start < rows;) {
    if (own < rows && key_of(bound) >= least_key) wanted[atomicAdd(wanted_count, 1u)] = own;
    workgroup_barrier();
    uint count = wanted_count;
    for (uint i = subgroup_index; i < count; i += subgroups) {
      uint row = wanted[i];
      float sum = one_row(row);
      if (lane == 0u) Floats(bounds).at[row] = sum;
      first_here = earlier(first_here, uvec2(key_of(sum), ~row));
    }
    start += gl_NumWorkGroups.x * workgroup_size;
    own += gl_NumWorkGroups.x * workgroup_size;
    if (start >= rows) break;
    bound = Floats(bounds).at[min(own, rows - 1u)];
    workgroup_barrier();
    if (gl_LocalInvocationIndex == 0u) wanted_count = 0u;
    workgroup_barrier();
  }
  return first_here;
}

uvec2 rescore_all() {
  read_y();
  workgroup_barrier();
  uvec2 first_here = uvec2(0u);
  uint groups = (rows + 3u) / 4u, stride = gl_NumWorkGroups.x * gl_NumSubgroups;
  for (uint group = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; group < groups; group += stride) {
    float sum = four_rows(group);
    uint row = row_of(group);
    if (stores_row(row)) Floats(bounds).at[row] = sum;
    first_here = earlier(first_here, row < rows ? uvec2(key_of(sum), ~row) : uvec2(0u));
  }
  return first_here;
}

void main() {
  find_lane();
  if (state.at[state_count] == 0u) return;
  screening s = screening_of(state, lowest_count);
  uvec2 first_here = uvec2(0u);
  if (s.rank != 0u) first_here = rescore_some(s);
  else first_here = rescore_all();
  first_here = first_of(first_here);
  if (gl_LocalInvocationIndex == 0u) WordPairs(firsts).at[gl_WorkGroupID.x] = first_here;
}
