// SPDX-License-Identifier: MIT
// Moves octets of positions of one slot between a layer's cache of a session that is not in a batch and the pool of
// pages. Workgroup (x, y) moves every gl_NumWorkGroups.x-th octet of key and value head y.
// variant: pages -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint head_dim = 64;
layout(constant_id = 2) const uint positions = 256;
layout(constant_id = 3) const uint context = 256;
layout(constant_id = 4) const uint cache_element = 0;
layout(constant_id = 5) const uint slot_words = 256;
layout(constant_id = 6) const uint page_size = 256;
layout(constant_id = 7) const uint slots = 1;
layout(constant_id = 8) const uint value_dim = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words keys, values, pool_keys, pool_values, state; };
#define PAGED
#include "slots.glsl"

const uint move_to_pool = 0u;
const uint cached_value_dim_ = value_dim != 0u ? value_dim : head_dim;
#define cached_value_dim cached_value_dim_
#include "coded_cache.glsl"
// 16 bytes each, of a position, and of an octet of a coded cache: of keys, then of values.
const uint in_quad = cache_element == element_f32 ? 4u : 8u;
const uint key_quads = head_dim / in_quad, value_quads = cached_value_dim / in_quad;
const uint key_octet_quads = octet_words / 4u, value_octet_quads = value_octet_words / 4u;

void copy(Words from, uint from_quad, Words to, uint to_quad) {
  WordQuads(to).at[to_quad] = WordQuads(from).at[from_quad];
}
void move(uint way, Words own, uint own_quad, Words pool, uint pool_quad) {
  if (way == move_to_pool) copy(own, own_quad, pool, pool_quad);
  else copy(pool, pool_quad, own, own_quad);
}

void main() {
  uint head = gl_WorkGroupID.y, way = state.at[state_move], slot = slot_at(min(state.at[state_move_slot], slots - 1u)),
       limit = limit_of(slot);
  uint end = min(state.at[state_move_end], (limit + 7u) / 8u);
  uint octets = (positions + 7u) / 8u, pool_octets = context / 8u;
  for (uint octet = state.at[state_move_first] + gl_WorkGroupID.x; octet < end; octet += gl_NumWorkGroups.x) {
    if (8u * octet + positions < 8u * end) continue;  // a ring holds only the last octets
    uint own_position = 8u * octet % (8u * octets), pool = pool_offset(slot, 8u * octet);
    uint own_octet = head * octets + own_position / 8u, pool_octet = head * pool_octets + pool / 8u;
    if (coded_cache) {
      for (uint i = gl_LocalInvocationIndex; i < key_octet_quads; i += workgroup_size)
        move(way, keys, own_octet * key_octet_quads + i, pool_keys, pool_octet * key_octet_quads + i);
      for (uint i = gl_LocalInvocationIndex; i < value_octet_quads; i += workgroup_size)
        move(way, values, own_octet * value_octet_quads + i, pool_values, pool_octet * value_octet_quads + i);
      continue;
    }
    uint own_value = (head * positions + own_position) * value_quads,
         pool_value = (head * context + pool) * value_quads;
    for (uint i = gl_LocalInvocationIndex; i < 8u * key_quads; i += workgroup_size)
      move(way, keys, 8u * own_octet * key_quads + i, pool_keys, 8u * pool_octet * key_quads + i);
    for (uint i = gl_LocalInvocationIndex; i < 8u * value_quads; i += workgroup_size)
      if (own_position + i / value_quads < positions) move(way, values, own_value + i, pool_values, pool_value + i);
  }
}
