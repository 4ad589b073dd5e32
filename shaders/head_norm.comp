// SPDX-License-Identifier: MIT
// Heads of stacked q, k and v: norm and rotary embedding of q and k, then q to the output, k and v to the cache. One
// workgroup a head (x) and token (y).
// variant: head_norm -DWIDE_LOADS=0
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
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint kv_heads = 1;
layout(constant_id = 3) const uint head_dim = 64;
layout(constant_id = 4) const float eps = 1e-6;
layout(constant_id = 5) const uint context = 256;
layout(constant_id = 6) const uint ring = 0;
layout(constant_id = 7) const uint cache_element = 0;
layout(constant_id = 8) const uint subgroup_width = 0;
layout(constant_id = 9) const uint slot_words = 0;
layout(constant_id = 10) const uint page_size = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width head_dim
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, q_norm, k_norm, output_, state, keys, values, rope; };

const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim;
const uint rows = q_size + 2u * kv_size, epilogue = 2u;
#define UNSCALED
#define rope_of(position, pair) rope_from_turns(position, word_pair(rope, pair))
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define place_of(token, position) (batched ? row_place(token, position) : slot_of(position))
#include "epilogue.glsl"

shared vec4 shared_y[head_dim / 4u];

void main() {
  find_place();
  uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  bool wanted = token < state.at[state_count];
  if (subgroup_width < 32u && !wanted)
    return;  // GPUs: behind that the driver takes lanes apart, and all waits for the count
  read_epilogue();
  uint first = (token * (heads + 2u * kv_heads) + head) * norm_quads;
  if (head < heads + kv_heads) {
    Words weight = head < heads ? q_norm : k_norm;
    float largest, r = inverse_rms(input_, first, weight, eps, largest);
    for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
      reload_chunk(input_, first, weight, chunk);
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i)) shared_y[norm_quad(chunk, i)] =
          normalised(i, r);
    }
  } else {
    for (uint quad = gl_LocalInvocationIndex; quad < norm_quads; quad += workgroup_size)
      shared_y[quad] = float_quad(input_, first + quad);
  }
  workgroup_barrier();
  for (uint i = gl_LocalInvocationIndex; i < head_dim / 4u; i += workgroup_size) {
    uint low = 2u * i, high = low + head_dim / 2u;  // two neighbouring pairs
    if (wanted)
      rope_cache(token, head * norm_quads + i,
                 vec4(shared_y[low >> 2][low & 3u], shared_y[high >> 2][high & 3u], shared_y[low >> 2][(low & 3u) + 1u],
                      shared_y[high >> 2][(high & 3u) + 1u]));
  }
}
