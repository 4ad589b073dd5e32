// SPDX-License-Identifier: MIT
// Contributions of an FFN's features for one token: of each layer the `count` features with the largest contributions,
// and the size of all. A workgroup has a layer.
// variant: walk_trace -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 1024;
layout(constant_id = 2) const uint features = 1024;
layout(constant_id = 3) const uint layers = 1;
layout(constant_id = 4) const uint count = 32;
layout(constant_id = 5) const uint slots = 256;
layout(constant_id = 6) const uint value_stride = 1024;
layout(constant_id = 7) const uint choice_stride = 2048;
layout(constant_id = 8) const uint listed = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words values, gates, choice, norms, trace, state; };

#include "largest.glsl"

shared float squares[workgroup_size];

float kept[keeps ? stretch : 1u];
uint layer;
uint entry;  // word of the layer's part of the token

uint feature_of(uint index) {
  return listed != 0u ? min(choice.at[layer * choice_stride + 2u * index], features - 1u) : index;
}
// A feature's contribution, with the sign of its value.
float contribution(uint index) {
  uint inside = min(index, columns - 1u);
  precise float size =
      Floats(values).at[layer * value_stride + inside] * Floats(norms).at[layer * features + feature_of(inside)];
  return size;
}
float own_contribution(uint j, uint index) { return keeps ? kept[keeps ? j : 0u] : contribution(index); }
uint size_of(uint j, uint index) { return floatBitsToUint(own_contribution(j, index)) & 0x7fffffffu; }
void take(uint j, uint index, uint rank) {
  uint score =
      listed != 0u ? choice.at[layer * choice_stride + 2u * index + 1u] : gates.at[layer * value_stride + index];
  uint at = entry + 3u + 3u * rank;
  trace.at[at] = feature_of(index);
  trace.at[at + 1u] = score;
  trace.at[at + 2u] = floatBitsToUint(own_contribution(j, index));
}

void main() {
  if (state.at[state_count] == 0u) return;
  uint me = gl_LocalInvocationIndex, first = me * stretch, own = first < columns ? min(stretch, columns - first) : 0u;
  layer = min(gl_WorkGroupID.x, layers - 1u);
  entry = (state.at[state_position] % slots * layers + layer) * (3u + 3u * count);
  if (keeps) [[dont_unroll]]
    for (uint j = 0u; j < stretch; ++j) kept[keeps ? j : 0u] = contribution(first + j);

  float square = 0.0;
  each_own(j) {
    float size = own_contribution(j, first + j);
    square += size * size;
  }
  squares[me] = square;
  barrier();
  // A tree sum that works with any workgroup size.
  for (uint left = workgroup_size; left > 1u; left = (left + 1u) / 2u) {
    uint half_ = (left + 1u) / 2u;
    if (me < left / 2u) squares[me] += squares[me + half_];
    barrier();
  }
  if (me == 0u) {
    trace.at[entry] = state.at[state_position];
    trace.at[entry + 1u] = state.at[state_tokens];
    trace.at[entry + 2u] = floatBitsToUint(sqrt(squares[0]));
  }
  take_largest();
}
