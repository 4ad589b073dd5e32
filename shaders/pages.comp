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
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words keys, values, pool_keys, pool_values, state; };
#define PAGED
#include "slots.glsl"

const uint move_to_pool = 0u;
#include "coded_cache.glsl"
const uint row_quads = head_dim / (cache_element == element_f32 ? 4u : 8u);  // 16 bytes each, of a position
const uint octet_quads = octet_words / 4u;                                   // of a coded cache

void copy(Words from, uint from_quad, Words to, uint to_quad) {
  WordQuads(to).at[to_quad] = WordQuads(from).at[from_quad];
}

void main() {
  uint head = gl_WorkGroupID.y, way = state.at[state_move], slot = slot_at(min(state.at[state_move_slot], slots - 1u)),
       limit = limit_of(slot);
  uint end = min(state.at[state_move_end], (limit + 7u) / 8u);
  uint octets = (positions + 7u) / 8u, pool_octets = context / 8u;
  for (uint octet = state.at[state_move_first] + gl_WorkGroupID.x; octet < end; octet += gl_NumWorkGroups.x) {
    if (8u * octet + positions < 8u * end) continue;  // a ring holds only the last octets
    uint place = 8u * octet % (8u * octets), pool = pool_place(slot, 8u * octet);
    if (coded_cache) {
      uint own = (head * octets + place / 8u) * octet_quads, pooled = (head * pool_octets + pool / 8u) * octet_quads;
      for (uint i = gl_LocalInvocationIndex; i < octet_quads; i += workgroup_size) {
        if (way == move_to_pool) {
          copy(keys, own + i, pool_keys, pooled + i);
          copy(values, own + i, pool_values, pooled + i);
        } else {
          copy(pool_keys, pooled + i, keys, own + i);
          copy(pool_values, pooled + i, values, own + i);
        }
      }
      continue;
    }
    uint own_key = (head * octets + place / 8u) * 8u * row_quads,
         pool_key = (head * pool_octets + pool / 8u) * 8u * row_quads;
    uint own_value = (head * positions + place) * row_quads, pool_value = (head * context + pool) * row_quads;
    for (uint i = gl_LocalInvocationIndex; i < 8u * row_quads; i += workgroup_size) {
      bool exists = place + i / row_quads < positions;
      if (way == move_to_pool) {
        copy(keys, own_key + i, pool_keys, pool_key + i);
        if (exists) copy(values, own_value + i, pool_values, pool_value + i);
      } else {
        copy(pool_keys, pool_key + i, keys, own_key + i);
        if (exists) copy(pool_values, pool_value + i, values, own_value + i);
      }
    }
  }
}
