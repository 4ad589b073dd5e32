// SPDX-License-Identifier: MIT
// Ternary weights times int8 activations, with norm and quantisation before and an epilogue (scale, residual, rotary
// embedding and cache, gate). On a GPU a subgroup takes groups of 4 rows and its lanes stride over tiles of 16 columns,
// one 16-byte load each.
// variant: ternary_matmul -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: ternary_matmul_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
// variant: ternary_matmul_cpu -DINTEGER_DOT=0 -DWIDE_LOADS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if INTEGER_DOT
#extension GL_EXT_integer_dot_product : require
#endif
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint prologue = 0;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint tile_tokens = 1;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint q_size = 256;
layout(constant_id = 9) const uint kv_size = 64;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const float rope_theta = 500000.0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint subgroup_width = 0;
layout(constant_id = 14) const uint slot_words = 0;
layout(constant_id = 15) const uint page_size = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool quantises = prologue == 1u || prologue == 4u;  // with a norm first, or without
#define normalises (prologue != 4u)
const uint norm_width = quantises ? columns : 0u;
#define columns_max columns
#include "norm.glsl"
#include "ternary.glsl"

#if WIDE_LOADS
layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, factors, weight, scales, output_, state, keys, values;
}
pushed;
Words input_, norm_weight, factors, weight, scales, output_, state, keys, values;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  factors = pushed.factors;
  weight = pushed.weight;
  scales = pushed.scales;
  output_ = pushed.output_;
  state = pushed.state;
  keys = pushed.keys;
  values = pushed.values;
}
#else
layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, factors, weight, scales, output_, state, keys, values;
};
#define take_pushed()
#endif

#define slot_of(position) min(position, context)
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"

#define product_part gl_WorkGroupID.x
#define product_parts gl_NumWorkGroups.x
#include "ternary_product.glsl"

void main() {
  take_pushed();
  find_lane();
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count];
  if (first_token >= count) return;

  float own_factor = 0.0;
  int own_sum = 0;
  if (quantises) {
    own_factor = quantise_input(own_sum);
    workgroup_barrier();
    own_sum = whole_sum(own_sum);
  }
  read_epilogue();
  multiply(first_token, min(count - first_token, tile_tokens), own_factor, own_sum);
}
