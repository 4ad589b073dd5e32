// SPDX-License-Identifier: MIT
// The gated part of an FFN for one token, feature by feature. A workgroup has neighbouring features: it computes their
// gates, in tiles of four rows, lists the features whose gate is above 0, and computes only their up vectors. Its
// subgroups share both by pieces of columns; the next piece is in flight while one is multiplied. There is no return
// after the state's count is read: after one the driver would diverge lanes.
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
layout(constant_id = 4) const uint features = 128;
layout(constant_id = 5) const uint sum_words = 256;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool quantises = true;
#define norm_width columns
#include "norm.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, weight, up, scales, output_, state, gates, value_norm, totals;
};

#include "quantised_input.glsl"

const uint together = 4u;  // tiles of a piece in each lane
#define piece_tiles (together * subgroup_size)
#define pieces ((tiles + piece_tiles - 1u) / piece_tiles)

shared int gate_sums[features], up_sums[features];
shared uint list[features], listed;
uint first, own;  // features of the workgroup

struct piece {
  uvec4 at[together];
};

// Piece `item` of the workgroup's gates, or of its listed ups: of four features, one per component.
piece load_gates(uint item) {
  piece out_;
  uint group = first / 4u + item / pieces, tile = item % pieces * piece_tiles + lane;
  LATER_UNROLLED for (uint k = 0u; k < together; ++k) out_.at[k] =
      word_quad(weight, group * tiles + min(tile + k * subgroup_size, tiles - 1u));
  return out_;
}
piece load_ups(uint item) {
  piece out_;
  uint tile = item % pieces * piece_tiles + lane, at = item / pieces * 4u;
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
    uint row = (first + list[min(at + r, listed - 1u)]) * tiles;
    LATER_UNROLLED for (uint k = 0u; k < together; ++k) out_.at[k][r] =
        up.at[row + min(tile + k * subgroup_size, tiles - 1u)];
  }
  return out_;
}
void multiply(inout ivec4 own_sums, piece codes, uint item) {
  uint tile = item % pieces * piece_tiles + lane;
  LATER_UNROLLED for (uint k = 0u; k < together; ++k) {
    uint at = tile + k * subgroup_size;
    accumulate_one(own_sums, at < tiles ? codes.at[k] : uvec4(0u), shared_x[min(at, tiles - 1u)]);
  }
}

// A subgroup's share of `items`.
void share_of(uint items, out uint begin, out uint end) {
  begin = subgroup_index * items / subgroups;
  end = (subgroup_index + 1u) * items / subgroups;
}

void main() {
  find_lane();
  bool wanted = state.at[state_count] != 0u;
  uint me = gl_LocalInvocationIndex;
  first = min(gl_WorkGroupID.x * features, rows - 4u);
  own = min(features, rows - first);
  for (uint i = me; i < features; i += workgroup_size) gate_sums[i] = up_sums[i] = 0;
  if (me == 0u) listed = 0u;
  // Clears the sums to which walk_down adds.
  for (uint i = gl_WorkGroupID.x * workgroup_size + me; i < sum_words; i += gl_NumWorkGroups.x * workgroup_size)
    if (wanted) totals.at[rows / 4u + gl_NumWorkGroups.x + i] = 0u;
  uint begin, end;
  share_of(own / 4u * pieces, begin, end);
  piece next;
  if (begin < end) next = load_gates(begin);
  int activation_sum;
  float factor = quantise_input(activation_sum);
  workgroup_barrier();
  activation_sum = whole_sum(activation_sum);
  float gate_scale = Floats(scales).at[0], up_scale = Floats(scales).at[1];
  bool sound = finite(factor);

  ivec4 own_sums = ivec4(0);
  for (uint item = begin; item < end; ++item) {
    piece codes = next;
    next = load_gates(min(item + 1u, end - 1u));
    multiply(own_sums, codes, item);
    if (item + 1u == end || (item + 1u) % pieces == 0u) {
      own_sums = subgroup_sum4(own_sums);
      if (lane < 4u) atomicAdd(gate_sums[item / pieces * 4u + lane], own_sums[lane]);
      own_sums = ivec4(0);
    }
  }
  workgroup_barrier();
  for (uint f = me; f < own; f += workgroup_size)
    if (gate_sums[f] > activation_sum || !sound) list[atomicAdd(listed, 1u)] = f;
  workgroup_barrier();
  share_of((listed + 3u) / 4u * pieces, begin, end);
  if (begin < end) next = load_ups(begin);
  for (uint item = begin; item < end; ++item) {
    piece codes = next;
    next = load_ups(min(item + 1u, end - 1u));
    multiply(own_sums, codes, item);
    if (item + 1u == end || (item + 1u) % pieces == 0u) {
      own_sums = subgroup_sum4(own_sums);
      uint at = item / pieces * 4u + lane;
      if (lane < 4u && at < listed) atomicAdd(up_sums[list[at]], own_sums[lane]);
      own_sums = ivec4(0);
    }
  }
  workgroup_barrier();

  float most = 0.0;
  for (uint quad = me; quad < own / 4u; quad += workgroup_size) {
    ivec4 g, u;
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
      g[r] = gate_sums[4u * quad + r] - activation_sum;
      u[r] = up_sums[4u * quad + r] - activation_sum;
    }
    precise vec4 gate = vec4(g) * (factor * gate_scale);
    precise vec4 h = (gate * gate) * (vec4(u) * (factor * up_scale));
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) h[r] = g[r] > 0 || !sound ? h[r] : 0.0;
    uint at = first / 4u + quad;
    precise vec4 square = h * h, product = h * float_quad(value_norm, at);
    precise float sum = (square.x + square.y) + (square.z + square.w);
    most = max(most, greatest(product));
    if (!wanted) continue;
    FloatQuads(output_).at[at] = h;
    Floats(totals).at[at] = sum;
    if (uvec2(gates) != uvec2(0u)) FloatQuads(gates).at[at] = gate;
  }
  most = subgroup_max(most);
  if (subgroups > 1u && lane == 0u) from_subgroups[subgroup_index] = most;
  workgroup_barrier();
  if (me == 0u && wanted) {
    for (uint g = 1u; g < subgroups; ++g) most = max(most, from_subgroups[g]);
    Floats(totals).at[rows / 4u + gl_WorkGroupID.x] = most;
  }
}
