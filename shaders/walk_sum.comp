// SPDX-License-Identifier: MIT
// Adds up features: their values times their down vectors, stored by feature. A workgroup has a stripe of the output
// (x) and every splits-th of the slots that share the features (y); a lane has 16 bytes of a vector, and vectors of
// further features are in flight while it multiplies.
// variant: walk_sum -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"
#define LATER_UNROLLED [[dont_unroll]]

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 1024;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint count = 64;
layout(constant_id = 4) const uint weight_element = 0;
layout(constant_id = 5) const uint listed = 1;
layout(constant_id = 6) const uint epilogue = 0;
layout(constant_id = 7) const uint stripe = 32;
layout(constant_id = 8) const uint splits = 1;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, choice, weight, output_, state; };

const uint slots = 128u, own_slots = slots / splits;              // kernels::walk_sum_slots
const uint unit_quads = weight_element == element_f32 ? 1u : 2u;  // of a lane's 16 bytes
const uint units = stripe / 4u / unit_quads, row_units = rows / 4u / unit_quads;
const uint turns = (count + slots - 1u) / slots;                         // features of a slot
const uint together = 8u, batches = (turns + together - 1u) / together;  // loads in flight together
const uint staged_values = turns * own_slots;
const bool stages = staged_values <= 4096u;
shared vec4 sums[own_slots * stripe / 4u];
shared float staged[stages ? staged_values : 1u];

uint index_of(uint slot, uint turn) { return turn * slots + slot * splits + gl_WorkGroupID.y; }
struct batch {
  uvec4 at[together];
};
batch load(uint item, uint from) {
  batch out_;
  uint slot = item / units, unit = min(gl_WorkGroupID.x * units + item % units, row_units - 1u);
  LATER_UNROLLED for (uint k = 0u; k < together; ++k) {
    uint inside = min(index_of(slot, from * together + k), count - 1u);
    uint feature = listed != 0u ? min(choice.at[2u * inside], columns - 1u) : inside;
    out_.at[k] = word_quad(weight, feature * row_units + unit);
  }
  return out_;
}
vec4 values_of(uint low, uint high) {
  return weight_element == element_f16 ? vec4(f16_pair(low), f16_pair(high)) : vec4(bf16_pair(low), bf16_pair(high));
}

void main() {
  if (state.at[state_count] == 0u) return;
  uint me = gl_LocalInvocationIndex, items = own_slots * units;
  batch next = load(min(me, items - 1u), 0u);
  if (stages) {
    for (uint i = me; i < staged_values; i += workgroup_size) {
      uint index = index_of(i % own_slots, i / own_slots);
      staged[i] = index < count ? Floats(input_).at[index] : 0.0;
    }
    barrier();
  }
  for (uint item = me; item < items; item += workgroup_size) {
    uint slot = item / units;
    precise vec4 sum = vec4(0.0), more = vec4(0.0);
    for (uint b = 0u; b < batches; ++b) {
      batch now = next;
      if (b + 1u < batches) next = load(item, b + 1u);
      else next = load(min(item + workgroup_size, items - 1u), 0u);
      LATER_UNROLLED for (uint k = 0u; k < together; ++k) {
        uint turn = b * together + k, index = index_of(slot, turn);
        float value =
            stages ? staged[min(turn, turns - 1u) * own_slots + slot] : Floats(input_).at[min(index, count - 1u)];
        uvec4 w = now.at[k];
        precise vec4 product = value * (unit_quads == 1u ? uintBitsToFloat(w) : values_of(w.x, w.y)),
                     next_sum = sum + product;
        sum = index < count ? next_sum : sum;
        if (unit_quads == 2u) {
          precise vec4 other = value * values_of(w.z, w.w), next_more = more + other;
          more = index < count ? next_more : more;
        }
      }
    }
    sums[item * unit_quads] = sum;
    if (unit_quads == 2u) sums[item * unit_quads + 1u] = more;
  }
  barrier();
  for (uint step_ = own_slots / 2u; step_ != 0u; step_ >>= 1u) {
    for (uint item = me; item < step_ * stripe / 4u; item += workgroup_size) {
      precise vec4 sum = sums[item] + sums[item + step_ * stripe / 4u];
      sums[item] = sum;
    }
    barrier();
  }
  for (uint item = me; item < stripe / 4u; item += workgroup_size) {
    uint at = gl_WorkGroupID.x * (stripe / 4u) + item;
    if (at < rows / 4u) {
      precise vec4 sum = sums[item];
      if (epilogue == 1u) sum = float_quad(output_, at) + sum;
      FloatQuads(output_).at[gl_WorkGroupID.y * (rows / 4u) + at] = sum;
    }
  }
}
