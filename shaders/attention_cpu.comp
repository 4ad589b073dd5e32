// SPDX-License-Identifier: MIT
// Attention for CPU drivers: one subgroup computes some heads of a token that share keys and values, so that these are
// read once for all of the heads. A lane has a position for scores, then some channels; lanes exchange values through
// shared memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variant: attention_cpu -DWIDE_LOADS=1
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint kv_heads = 1;
layout(constant_id = 3) const uint head_dim = 64;
layout(constant_id = 4) const uint context = 256;
layout(constant_id = 5) const uint cache_element = 0;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(constant_id = 7) const uint splits = 1;
layout(constant_id = 8) const uint heads_together = 1;
layout(constant_id = 9) const float scale = 0.0;
layout(constant_id = 10) const uint window = 0;
layout(constant_id = 11) const uint ring = 0;
layout(constant_id = 12) const uint slot_words = 0;
layout(constant_id = 13) const uint page_size = 0;
layout(constant_id = 15) const float softcap = 0.0;
layout(constant_id = 16) const uint has_sinks = 0;
layout(constant_id = 17) const uint ahead = 0;
layout(constant_id = 18) const uint value_dim = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define attention_window window
#define attention_ring ring
#define attention_scale scale
#define attention_softcap softcap
#define attention_sinks has_sinks
const uint cached_value_dim_ = value_dim != 0u ? value_dim : head_dim;
#define cached_value_dim cached_value_dim_
#include "attention.glsl"
#include "attention_range.glsl"

layout(push_constant, scalar) uniform Push {
  Words query, keys, values, output_, state, partials, counters;
  Floats sinks;
}
pushed;
Words query, keys, values, output_, state, partials, counters;
Floats sinks;
void take_pushed() {
  query = pushed.query;
  keys = pushed.keys;
  values = pushed.values;
  output_ = pushed.output_;
  state = pushed.state;
  partials = pushed.partials;
  counters = pushed.counters;
  sinks = pushed.sinks;
}
#define PAGED
#include "slots.glsl"
uint own_slot;
#define slot_of_span(first) (batched ? (first) : span_slot(first))
#define cache_row(position) (batched ? pool_offset(own_slot, position) : (position))

#include "attention_cpu.glsl"

void main() {
  take_pushed();
  find_lane();
  uint token = gl_WorkGroupID.y;
  if (token >= state.at[state_count] || subgroup_index != 0u || (splits > 1u && gl_WorkGroupID.z != 0u)) return;
  uvec2 range = seen_by(state.at[state_position], token, state.at[state_count]);
  if (batched) {
    own_slot = slot_at(token);
    range.y = min(state.at[own_slot + state_position] + 1u, limit_of(own_slot));
    range.x = first_seen(range.y);
    if (state.at[own_slot + state_count] == 0u || range.y == 0u) return;
  }
  attend(token, gl_WorkGroupID.x * heads_together, range.x, range.y);
}
