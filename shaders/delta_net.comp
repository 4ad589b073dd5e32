// SPDX-License-Identifier: MIT
// The gated delta rule: a state per value head, which each token decays and corrects; or Mamba-2's rule, which adds
// without correcting. A workgroup has some columns of a head (x) and processes token after token; with a batch, a
// slot's token per workgroup (y). Keys, queries and gates of some tokens are staged together; then `lanes` invocations
// process them for a column, which they hold in registers.
// variant: delta_net -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

// NVIDIA's driver unrolls these loops by itself; llvmpipe would compile for seconds (tools/embed_shaders).
#define EACH_QUAD(i) [[dependency_infinite]] for (uint i = 0u; i < quads; ++i)
#define EACH_OWN(c) [[dont_unroll]] for (uint c = 0u; c < own; ++c)  // unrolled: as in subgroup.glsl

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
layout(constant_id = 11) const uint lanes = 1;        // or 4
layout(constant_id = 12) const uint state_space = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push {
  Words qkv, beta, alpha, decay, shift, skip, gate, output_, recurrent, state;
};

#include "slots.glsl"

// Offsets of a token's queries, keys and values.
const bool corrects = state_space == 0u;
const uint key_width = key_heads * key_dim, value_width = value_heads * value_dim,
           row_width = 2u * key_width + value_width;
const uint queries_at = corrects ? 0u : value_width + key_width, keys_at = corrects ? key_width : value_width,
           values_at = corrects ? 2u * key_width : 0u;
// A column has four sums, each over every fourth row.
const uint own = 4u / lanes;  // per invocation
const uint quads = (key_dim + 3u) / 4u, columns = workgroup_size / lanes;
const bool whole_quads = key_dim % 4u == 0u, held = value_dim <= parts * columns;  // no invocation has two columns
// Tokens staged at once: 16; eight if heads are above 128 or a column has one lane, which fits in 16 KiB.
const uint staged = 8u + 8u * ((384u - key_dim) / 256u) * (lanes / 4u);
const uint stride = 4u * quads + 1u;  // of vectors, so that 16 of them begin in different banks

shared float queries[staged * stride], keys[staged * stride];
shared float factors[2u * staged], fades[staged], writes[staged];

uint head, key_head, first_row;

float word(Words from, uint index) { return uintBitsToFloat(from.at[index]); }

// 1 / the length of a staged vector, with 1e-6 added to the square; a query is also divided by sqrt(key_dim).
float factor_of(uint token, bool of_query) {
  precise float all = 0.0;
  for (uint i = 0u; i < key_dim; ++i) {
    float x = of_query ? queries[token * stride + i] : keys[token * stride + i];
    precise float square = x * x;
    all = all + square;
  }
  precise float sum = all + 1e-6;
  precise float r = 1.0 / sqrt(sum);
  precise float scale = 1.0 / sqrt(float(key_dim));
  precise float scaled = r * scale;
  return of_query ? scaled : r;
}

void stage_gates(uint row, uint index, float fade, float shifted) {
  uint group = value_heads / key_heads, at = row * gate_stride + head / group * gate_group + head % group;
  precise float x = word(alpha, at) + shifted;
  precise float soft = x > 20.0 ? x : canonical_log(1.0 + canonical_exp(x));
  precise float exponent = fade * soft;
  precise float write = soft;
  if (corrects) write = 1.0 / (1.0 + canonical_exp(-word(beta, at)));
  writes[index] = write;
  fades[index] = canonical_exp(exponent);
}

// Stages keys and queries of `count` tokens, divided by their lengths if the rule corrects, and their gates.
void stage(uint row, uint count, float fade, float shifted) {
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < count * 4u * quads; i += workgroup_size) {
    uint token = i / (4u * quads), channel = i % (4u * quads),
         at = (row + token) * row_width + key_head * key_dim + channel;
    bool exists = whole_quads || channel < key_dim;
    queries[token * stride + channel] = exists ? word(qkv, at + queries_at) : 0.0;
    keys[token * stride + channel] = exists ? word(qkv, at + keys_at) : 0.0;
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < 3u * count; i += workgroup_size) {
    if (i >= 2u * count) stage_gates(row + i % count, i % count, fade, shifted);
    else if (corrects) factors[i] = factor_of(i % count, i < count);
  }
  barrier();
  if (!corrects) return;
  for (uint i = gl_LocalInvocationIndex; i < count * 4u * quads; i += workgroup_size) {
    uint token = i / (4u * quads), at = token * stride + i % (4u * quads);
    precise float q = queries[at] * factors[token], k = keys[at] * factors[count + token];
    queries[at] = q;
    keys[at] = k;
  }
  barrier();
}

// Adds up a column's four sums, which its invocations have.
float whole(float sums[own]) {
  if (lanes == 4u) {
    precise float two = sums[0] + subgroupShuffleXor(sums[0], 1u);
    precise float all = two + subgroupShuffleXor(two, 2u);
    return all;
  }
  precise float all = (sums[0] + sums[1u % own]) + (sums[2u % own] + sums[3u % own]);
  return all;
}

// For Mamba-2: the state's output plus the skipped value, times silu of the gate.
float gated(float all, float value, float g, float skips) {
  precise float skipped = skips * value;
  precise float sum = all + skipped;
  precise float factor = g / (1.0 + canonical_exp(-g));
  precise float y = sum * factor;
  return y;
}

float value_at(uint row, uint column) { return word(qkv, row * row_width + values_at + column); }
float gate_at(uint row, uint column) { return corrects ? 0.0 : word(gate, row * value_width + column); }

void main() {
  uint part = gl_WorkGroupID.x % parts, slot = 0u, count = state.at[state_count];
  head = gl_WorkGroupID.x / parts;
  key_head = in_turn != 0u ? head % key_heads : head / (value_heads / key_heads);
  first_row = batched ? gl_WorkGroupID.y : 0u;
  if (batched) {
    slot = slot_at(first_row);
    if (first_row >= count || state.at[slot + state_count] == 0u) return;
    count = 1u;
  }
  uint kept = first_row * slot_floats + head * key_dim * value_dim;
  bool fresh = state.at[slot + state_position] == 0u;
  float fade = word(decay, head), shifted = word(shift, head), skips = corrects ? 0.0 : word(skip, head),
        s[quads * own];
  uint invocation = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, mine = invocation % lanes * own;
  for (uint first = 0u; first < count; first += staged) {
    uint end = min(first + staged, count);
    stage(first_row + first, end - first, fade, shifted);
    for (uint j = part * columns + invocation / lanes; j < value_dim; j += parts * columns) {
      if (!held || first == 0u) EACH_QUAD(i) EACH_OWN(c) {
          uint row = 4u * i + mine + c;
          bool empty = (fresh && first == 0u) || (!whole_quads && row >= key_dim);
          s[i * own + c] = empty ? 0.0 : word(recurrent, kept + row * value_dim + j);
        }
      // A token's value and gate are loaded while the previous token is computed.
      uint column = head * value_dim + j;
      float value = value_at(first_row + first, column), g = gate_at(first_row + first, column);
      for (uint token = first; token < end; ++token) {
        uint at = (token - first) * stride + mine, ahead = first_row + min(token + 1u, end - 1u);
        float value_ahead = value_at(ahead, column), gate_ahead = gate_at(ahead, column);
        float stays = fades[token - first];
        precise float seen[own], y[own];
        EACH_OWN(c) seen[c] = y[c] = 0.0;
        EACH_QUAD(i) EACH_OWN(c) {
          precise float faded = s[i * own + c] * stays;
          precise float product = faded * keys[at + 4u * i + c];
          s[i * own + c] = faded;
          seen[c] = seen[c] + product;
        }
        precise float change = (corrects ? value - whole(seen) : value) * writes[token - first];
        EACH_QUAD(i) EACH_OWN(c) {
          precise float added = keys[at + 4u * i + c] * change;
          precise float next = s[i * own + c] + added;
          precise float product = next * queries[at + 4u * i + c];
          s[i * own + c] = next;
          y[c] = y[c] + product;
        }
        float all = whole(y);
        if (mine == 0u)
          Floats(output_).at[(first_row + token) * value_width + column] = corrects ? all : gated(all, value, g, skips);
        value = value_ahead;
        g = gate_ahead;
      }
      if (!held || end == count) EACH_QUAD(i) EACH_OWN(c) {
          uint row = 4u * i + mine + c;
          if (whole_quads || row < key_dim) Floats(recurrent).at[kept + row * value_dim + j] = s[i * own + c];
        }
    }
  }
}
