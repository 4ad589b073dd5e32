// SPDX-License-Identifier: MIT
// Ternary weights times int8 activations of a chunk of tokens, with an epilogue (scale, residual, rotary embedding and
// cache, gate). A workgroup has a tile of rows (x) and tokens (y). Sums are integers, so every form gives the bits of
// ternary_matmul.
// variant: ternary_chunk -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: ternary_chunk_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
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
layout(constant_id = 4) const uint tile_rows = 128;
layout(constant_id = 5) const uint tile_tokens = 128;
layout(constant_id = 6) const uint head_dim = 64;
layout(constant_id = 7) const uint q_size = 256;
layout(constant_id = 8) const uint kv_size = 64;
layout(constant_id = 9) const uint context = 256;
layout(constant_id = 10) const float rope_theta = 500000.0;
layout(constant_id = 11) const uint cache_element = 0;
layout(constant_id = 12) const uint max_tokens = 512;
layout(local_size_x_id = 0) in;
const uint subgroup_width = 0u;  // nothing here depends on it
#include "subgroup.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, factors, weight, scales, output_, state, keys, values; };

#include "epilogue.glsl"

const uint tiles = columns / 16u, groups = rows / 4u;

// Scales the sums of four rows of codes 0, 1, 2, which mean -1, 0, +1, and passes them to the epilogue.
void finish_sums(uint token, uint group, ivec4 sums) {
  uvec2 word = word_pair(factors, token);
  precise vec4 y = vec4(sums - int(word.y)) * (uintBitsToFloat(word.x) * row_scales(group));
  finish(token, group, y);
}

// An invocation has 4 tokens of a group of 4 rows at a time; neighbours have the next tokens, then the next group.
void multiply(uint first_group, uint first_token, uint end_token) {
  const uint token_quads = tile_tokens / 4u;
  for (uint item = gl_LocalInvocationIndex; item < tile_rows / 4u * token_quads; item += workgroup_size) {
    uint group = first_group + item / token_quads, token = first_token + 4u * (item % token_quads);
    if (group >= groups || token >= end_token) continue;
    uint from[4];
    ivec4 sums[4];
    LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) {
      from[t] = min(token + t, end_token - 1u) * tiles;
      sums[t] = ivec4(0);
    }
    for (uint tile = 0u; tile < tiles; ++tile) {
      unpacked_codes codes = unpack(word_quad(weight, group * tiles + tile));
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t)
          accumulate(sums[t], codes, prepare(word_quad(input_, from[t] + tile)));
    }
    for (uint t = 0u; t < 4u && token + t < end_token; ++t) {  // a loop, so that the epilogue's code exists only once
      ivec4 own = sums[0];
      LATER_UNROLLED for (uint k = 1u; k < 4u; ++k) if (k == t) own = sums[k];
      finish_sums(token + t, group, own);
    }
  }
}

void main() {
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = min(state.at[state_count], max_tokens);
  if (first_token >= count) return;
  read_epilogue();
  multiply(gl_WorkGroupID.x * (tile_rows / 4u), first_token, min(count, first_token + tile_tokens));
}
