// SPDX-License-Identifier: MIT
// The gated delta rule: a state of each value head, which a token lets fade and corrects. One workgroup some columns of
// a head (x), which it takes from token to token; of a batch each (y) a slot's token. Keys, queries and gates of some
// tokens are made ready together, each vector by one invocation; then an invocation takes a column, which it holds in
// registers, through all of them.
// variant: delta_net -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

#define LATER_UNROLLED [[dont_unroll]]  // as in subgroup.glsl

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint key_heads = 2;
layout(constant_id = 2) const uint value_heads = 4;
layout(constant_id = 3) const uint key_dim = 64;
layout(constant_id = 4) const uint value_dim = 64;
layout(constant_id = 5) const uint in_turn = 0;
layout(constant_id = 6) const uint parts = 2;
layout(constant_id = 7) const uint gate_stride = 4;  // floats from one token to the next, in beta and in alpha
layout(constant_id = 8) const uint gate_group = 2;   // and from one group of value_heads / key_heads heads to the next
layout(constant_id = 9) const uint slot_words = 0;
layout(constant_id = 10) const uint slot_floats = 0;  // of `recurrent`, from one slot to the next
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words qkv, beta, alpha, decay, shift, output_, recurrent, state; };

#include "slots.glsl"

const uint staged = 8u;                                 // tokens at once
const bool held = value_dim <= parts * workgroup_size;  // an invocation has no more than one column

shared float queries[staged * key_dim], keys[staged * key_dim];
shared float fades[staged], writes[staged];

float word(Words from, uint index) { return uintBitsToFloat(from.at[index]); }

uint head, key_head, first_row;

// A vector divided by its length, 1e-6 added to the square; a query by sqrt(key_dim) too.
void stage_vector(uint token, bool of_query) {
  uint at = (first_row + token) * (2u * key_heads * key_dim + value_heads * value_dim) + key_head * key_dim +
            (of_query ? 0u : key_heads * key_dim);
  precise float all = 0.0;
  for (uint i = 0u; i < key_dim; ++i) {
    float x = word(qkv, at + i);
    precise float square = x * x;
    all = all + square;
  }
  precise float sum = all + 1e-6;
  precise float r = 1.0 / sqrt(sum);
  precise float scale = 1.0 / sqrt(float(key_dim));
  precise float factor = of_query ? r * scale : r;
  for (uint i = 0u; i < key_dim; ++i) {
    precise float x = word(qkv, at + i) * factor;
    if (of_query) queries[token % staged * key_dim + i] = x;
    else keys[token % staged * key_dim + i] = x;
  }
}

void stage_gates(uint token, float fade, float shifted) {
  uint group = value_heads / key_heads;
  uint at = (first_row + token) * gate_stride + head / group * gate_group + head % group;
  precise float write = 1.0 / (1.0 + canonical_exp(-word(beta, at)));
  precise float x = word(alpha, at) + shifted;
  precise float soft = x > 20.0 ? x : canonical_log(1.0 + canonical_exp(x));
  precise float exponent = fade * soft;
  writes[token % staged] = write;
  fades[token % staged] = canonical_exp(exponent);
}

void main() {
  uint part = gl_WorkGroupID.x % parts, own = 0u, count = state.at[state_count];
  head = gl_WorkGroupID.x / parts;
  key_head = in_turn != 0u ? head % key_heads : head / (value_heads / key_heads);
  first_row = batched ? gl_WorkGroupID.y : 0u;
  if (batched) {
    own = slot_at(first_row);
    if (first_row >= count || state.at[own + state_count] == 0u) return;
    count = 1u;
  }
  uint values = value_heads * value_dim, width = 2u * key_heads * key_dim + values;
  uint kept = first_row * slot_floats + head * key_dim * value_dim;
  bool fresh = state.at[own + state_position] == 0u;
  float fade = word(decay, head), shifted = word(shift, head);
  float s[key_dim];
  for (uint first = 0u; first < count; first += staged) {
    uint end = min(first + staged, count);
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < 3u * (end - first); i += workgroup_size) {
      uint token = first + i / 3u;
      if (i % 3u == 2u) stage_gates(token, fade, shifted);
      else stage_vector(token, i % 3u == 0u);
    }
    barrier();
    for (uint j = part * workgroup_size + gl_LocalInvocationIndex; j < value_dim; j += parts * workgroup_size) {
      if (!held || first == 0u) {
        bool empty = fresh && first == 0u;
        LATER_UNROLLED for (uint i = 0u; i < key_dim; ++i) s[i] =
            empty ? 0.0 : word(recurrent, kept + i * value_dim + j);
      }
      for (uint token = first; token < end; ++token) {
        uint at = token % staged * key_dim;
        float stays = fades[token % staged];
        precise float seen = 0.0;
        LATER_UNROLLED for (uint i = 0u; i < key_dim; ++i) {
          precise float faded = s[i] * stays;
          s[i] = faded;
          precise float product = faded * keys[at + i];
          seen = seen + product;
        }
        uint row = first_row + token;
        precise float change =
            (word(qkv, row * width + 2u * key_heads * key_dim + head * value_dim + j) - seen) * writes[token % staged];
        precise float y = 0.0;
        LATER_UNROLLED for (uint i = 0u; i < key_dim; ++i) {
          precise float added = keys[at + i] * change;
          precise float next = s[i] + added;
          s[i] = next;
          precise float product = next * queries[at + i];
          y = y + product;
        }
        Floats(output_).at[row * values + head * value_dim + j] = y;
      }
      if (!held || end == count)
        LATER_UNROLLED for (uint i = 0u; i < key_dim; ++i) Floats(recurrent).at[kept + i * value_dim + j] = s[i];
    }
  }
}
