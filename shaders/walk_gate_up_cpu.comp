// SPDX-License-Identifier: MIT
// walk_gate_up for CPU drivers: gates by the code of the dense product, into shared memory; then each lane has the up
// vectors of some listed features and reads them in 64-bit words. Loads take most of the time there
// (docs/performance.md), and they cost the same at any address.
// variant: walk_gate_up_cpu -DINTEGER_DOT=0 -DWIDE_LOADS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint features = 128;
layout(constant_id = 5) const uint sum_words = 0;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define quantises true
#define norm_width columns
#define columns_max columns
const uint tile_tokens = 1u;
#include "norm.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, weight, up, scales, output_, state, gates, value_norm, totals;
}
pushed;
Words input_, norm_weight, weight, up, scales, output_, state, gates, value_norm, totals;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  weight = pushed.weight;
  up = pushed.up;
  scales = pushed.scales;
  output_ = pushed.output_;
  state = pushed.state;
  gates = pushed.gates;
  value_norm = pushed.value_norm;
  totals = pushed.totals;
}
#define factors scales

shared float shared_gate[features], shared_h[features];
shared uint list[features + 1u], listed;  // one more entry, for features that are off
float gate_scale;

// The product of the workgroup's gates.
Words own_gates;
uint own;  // features of the workgroup
#define reads_ahead (features * columns > 1u << 18)
vec4 row_scales(uint group) { return vec4(gate_scale); }
void finish(uint token, uint group, vec4 y) {
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) shared_gate[4u * group + r] = y[r];
}
#define product_part 0u
#define product_parts 1u
#define rows own
#define weight own_gates
#include "ternary_product.glsl"
#undef rows
#undef weight

const uint together = 8u;  // up vectors of a lane at once

// Reads a word of each cache line of a step's up vectors: prefetchers do not find rows of other features.
void read_ups_ahead(uint first, uint at, uint count) {
  if (!reads_ahead) return;
  for (uint b = 0u; b < together; ++b) {
    uint row = (first + list[min(at + b * workgroup_size + gl_LocalInvocationIndex, count - 1u)]) * tiles;
    for (uint word = 0u; word < tiles; word += 64u)
      LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) words_ahead |= up.at[row + min(word + 16u * i, tiles - 1u)];
  }
}

void main() {
  take_pushed();
  find_lane();
  if (state.at[state_count] == 0u) return;
  int sum;
  float factor = quantise_input(sum);
  workgroup_barrier();
  sum = whole_sum(sum);
  gate_scale = Floats(scales).at[0];
  float up_scale = Floats(scales).at[1];
  uint me = gl_LocalInvocationIndex, first = gl_WorkGroupID.x * features;
  own = min(features, rows - first);
  own_gates = Words(uint64_t(weight) + uint64_t(first) * tiles * 4u);
  multiply(0u, 1u, factor, sum);
  for (uint i = gl_WorkGroupID.x * workgroup_size + me; i < sum_words; i += gl_NumWorkGroups.x * workgroup_size)
    totals.at[rows / 4u + gl_NumWorkGroups.x + i] = 0u;
  if (me == 0u) listed = 0u;
  workgroup_barrier();
  for (uint f = me; f < own; f += workgroup_size) {
    shared_h[f] = 0.0;
    bool on = !(shared_gate[f] <= 0.0);
    uint at = atomicAdd(listed, uint(on));
    list[on ? at : features] = f;
  }
  workgroup_barrier();
  uint count = listed;
  precise float scale = factor * up_scale;
  if (count != 0u) read_ups_ahead(first, 0u, count);
  for (uint at = 0u; at < count; at += together * workgroup_size) {
    if (at + together * workgroup_size < count) read_ups_ahead(first, at + together * workgroup_size, count);
    uint feature[together], row[together];
    int own_sums[together];
    LATER_UNROLLED for (uint b = 0u; b < together; ++b) {
      feature[b] = list[min(at + b * workgroup_size + me, count - 1u)];
      row[b] = (first + feature[b]) * tiles;
      own_sums[b] = 0;
    }
    for (uint tile = 0u; tile < tiles; tile += 2u) {
      prepared left = activation_pairs(0u, 0u, tile), right = activation_pairs(0u, 0u, min(tile + 1u, tiles - 1u));
      LATER_UNROLLED for (uint b = 0u; b < together; ++b) {
        uvec2 codes = tiles % 2u == 0u ? word_pair(up, (row[b] + tile) / 2u)
                                       : uvec2(up.at[row[b] + tile],
                                               tile + 1u < tiles ? up.at[row[b] + min(tile + 1u, tiles - 1u)] : 0u);
        uint both = 0u, more = 0u;
        LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
          both += ((codes.x >> (2u * i)) & 0x00030003u) * left.pair[i];
          more += ((codes.y >> (2u * i)) & 0x00030003u) * right.pair[i];
        }
        int low = int(both << 16) >> 16, lower = int(more << 16) >> 16;
        own_sums[b] += ((int(both) - low) >> 16) + ((int(more) - lower) >> 16);
      }
    }
    LATER_UNROLLED for (uint b = 0u; b < together; ++b) {
      precise float g = shared_gate[feature[b]], h = (g * g) * (float(own_sums[b] - sum) * scale);
      shared_h[feature[b]] = h;
    }
  }
  workgroup_barrier();
  float most = 0.0;
  for (uint quad = me + (words_ahead & gl_WorkGroupID.z); quad < own / 4u; quad += workgroup_size) {
    vec4 h;
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) h[r] = shared_h[4u * quad + r];
    uint at = first / 4u + quad;
    FloatQuads(output_).at[at] = h;
    precise vec4 square = h * h, product = h * float_quad(value_norm, at);
    precise float total = (square.x + square.y) + (square.z + square.w);
    Floats(totals).at[at] = total;
    most = max(most, greatest(product));
  }
  // Without a trace the loop has no turns: the code after an `if` always runs, masked.
  for (uint quad = me; quad < (uvec2(gates) != uvec2(0u) ? own / 4u : 0u); quad += workgroup_size)
    FloatQuads(gates).at[first / 4u + quad] = vec4(shared_gate[4u * quad], shared_gate[4u * quad + 1u],
                                                   shared_gate[4u * quad + 2u], shared_gate[4u * quad + 3u]);
  most = subgroup_max(most);
  if (lane == 0u) from_subgroups[subgroup_index] = most;
  workgroup_barrier();
  if (me == 0u) {
    for (uint g = 1u; g < subgroups; ++g) most = max(most, from_subgroups[g]);
    Floats(totals).at[rows / 4u + gl_WorkGroupID.x] = most;
  }
}
