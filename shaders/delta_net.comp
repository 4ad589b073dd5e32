// SPDX-License-Identifier: MIT
// The gated delta rule: a state of each value head, which a token lets fade and corrects. One workgroup some columns of
// a head (x), which it takes from token to token.
// variant: delta_net -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint key_heads = 2;
layout(constant_id = 2) const uint value_heads = 4;
layout(constant_id = 3) const uint key_dim = 64;
layout(constant_id = 4) const uint value_dim = 64;
layout(constant_id = 5) const uint in_turn = 0;
layout(constant_id = 6) const uint parts = 2;
layout(constant_id = 7) const uint gate_stride = 4;  // floats from one token to the next, in beta and in alpha
layout(constant_id = 8) const uint gate_group = 2;   // and from one group of value_heads / key_heads heads to the next
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words qkv, beta, alpha, decay, shift, output_, recurrent, state; };

shared float query[key_dim], key[key_dim];

float word(Words from, uint index) { return uintBitsToFloat(from.at[index]); }

// 1 / the length of a vector, its root widened.
float inverse_length(bool of_query) {
  precise float sum = 1e-6, all = 0.0;
  for (uint i = 0u; i < key_dim; ++i) {
    float x = of_query ? query[i] : key[i];
    precise float square = x * x;
    all = all + square;
  }
  sum = all + sum;
  precise float r = 1.0 / sqrt(sum);
  return r;
}

void main() {
  uint head = gl_WorkGroupID.x / parts, part = gl_WorkGroupID.x % parts, group = value_heads / key_heads;
  uint key_head = in_turn != 0u ? head % key_heads : head / group;
  uint keys = key_heads * key_dim, values = value_heads * value_dim, width = 2u * keys + values;
  uint count = state.at[state_count], own = head * key_dim * value_dim;
  bool fresh = state.at[state_position] == 0u;
  float fade = word(decay, head), shifted = word(shift, head);
  precise float scale = 1.0 / sqrt(float(key_dim));
  for (uint token = 0u; token < count; ++token) {
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < key_dim; i += workgroup_size) {
      query[i] = word(qkv, token * width + key_head * key_dim + i);
      key[i] = word(qkv, token * width + keys + key_head * key_dim + i);
    }
    barrier();
    precise float of_query = inverse_length(true) * scale;
    float of_key = inverse_length(false);
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < key_dim; i += workgroup_size) {
      precise float q = query[i] * of_query, k = key[i] * of_key;
      query[i] = q;
      key[i] = k;
    }
    barrier();
    uint at = token * gate_stride + head / group * gate_group + head % group;
    precise float write = 1.0 / (1.0 + canonical_exp(-word(beta, at)));
    precise float x = word(alpha, at) + shifted;
    precise float soft = x > 20.0 ? x : canonical_log(1.0 + canonical_exp(x));
    precise float exponent = fade * soft;
    float stays = canonical_exp(exponent);
    bool empty = fresh && token == 0u;
    for (uint j = part * workgroup_size + gl_LocalInvocationIndex; j < value_dim; j += parts * workgroup_size) {
      precise float seen = 0.0;
      for (uint i = 0u; i < key_dim; ++i) {
        precise float s = empty ? 0.0 : word(recurrent, own + i * value_dim + j) * stays;
        precise float product = s * key[i];
        seen = seen + product;
      }
      precise float change = (word(qkv, token * width + 2u * keys + head * value_dim + j) - seen) * write;
      precise float y = 0.0;
      for (uint i = 0u; i < key_dim; ++i) {
        precise float s = empty ? 0.0 : word(recurrent, own + i * value_dim + j) * stays;
        precise float added = key[i] * change;
        precise float next = s + added;
        Floats(recurrent).at[own + i * value_dim + j] = next;
        precise float product = next * query[i];
        y = y + product;
      }
      Floats(output_).at[token * values + head * value_dim + j] = y;
    }
  }
}
