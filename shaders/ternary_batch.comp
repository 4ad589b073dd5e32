// SPDX-License-Identifier: MIT
// Ternary weights times int8 activations of a small batch of tokens: a workgroup has a group of 4 rows at a time, whose
// columns all its lanes share, which keeps latency low. The epilogue is that of ternary_matmul.
// variant: ternary_batch -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: ternary_batch_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
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
layout(constant_id = 3) const uint epilogue = 0;
layout(constant_id = 4) const uint tile_tokens = 8;
layout(constant_id = 5) const uint head_dim = 64;
layout(constant_id = 6) const uint q_size = 256;
layout(constant_id = 7) const uint kv_size = 64;
layout(constant_id = 8) const uint context = 256;
layout(constant_id = 9) const float rope_theta = 500000.0;
layout(constant_id = 10) const uint cache_element = 0;
layout(constant_id = 11) const uint subgroup_width = 0;
layout(constant_id = 12) const uint slot_words = 0;
layout(constant_id = 13) const uint page_size = 0;
layout(constant_id = 14) const uint tile_rows = 4;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, factors, weight, scales, output_, state, keys, values; };

#define slot_of(position) min(position, context)
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"

const uint tiles = columns / 16u;
shared ivec4 from_subgroups[workgroup_size / 4u * 8u];  // sums by subgroup and token

void main() {
  find_lane();
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count];
  if (first_token >= count) return;
  uint tokens = min(count - first_token, tile_tokens);
  read_epilogue();
  for (uint group = gl_WorkGroupID.x * (tile_rows / 4u); group < rows / 4u;
       group += gl_NumWorkGroups.x * (tile_rows / 4u)) {
    ivec4 sums[8];
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) sums[t] = ivec4(0);
    for (uint tile = gl_LocalInvocationIndex; tile < tiles; tile += workgroup_size) {
      unpacked_codes codes = unpack(word_quad(weight, group * tiles + tile));
      // Missing tokens repeat the last one: a load without a condition does not wait for earlier loads.
      LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) if (t < tile_tokens)
          accumulate(sums[t], codes, prepare(word_quad(input_, (first_token + min(t, tokens - 1u)) * tiles + tile)));
    }
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) if (t < tile_tokens) {
      ivec4 all = subgroup_sum4(sums[t]);
      if (lane == 0u) from_subgroups[subgroup_index * 8u + t] = all;
    }
    workgroup_barrier();
    for (uint t = gl_LocalInvocationIndex; t < tokens; t += workgroup_size) {
      ivec4 all = from_subgroups[t];
      for (uint g = 1u; g < subgroups; ++g) all += from_subgroups[g * 8u + t];
      uvec2 word = word_pair(factors, first_token + t);
      precise vec4 y = vec4(all - int(word.y)) * (uintBitsToFloat(word.x) * row_scales(group));
      finish(first_token + t, group, y);
    }
    workgroup_barrier();
  }
}
