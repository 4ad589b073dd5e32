// SPDX-License-Identifier: MIT
// The language model head for a small batch of tokens: dense_matmul of normalised activations, with one read of the
// weights for a tile of up to 8 tokens. A subgroup has four rows at a time. A lane has four columns of each 128 or so,
// half of a virtual lane's octet, so that the 32 sums of rows and tokens stay in registers and each load of activations
// serves four rows; the virtual lanes are computed in turn.
// variant: dense_batch -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 4096;
layout(constant_id = 3) const uint weight_element = 0;
layout(constant_id = 4) const uint tile_tokens = 8;
layout(constant_id = 5) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"

layout(push_constant, scalar) uniform Push { Words input_, weight, output_, state; };

const uint quads = columns / 4u, steps = (quads + 63u) / 64u;
const bool single = subgroup_width >= 32u;  // a lane has halves of two virtual lanes, in two turns
#define TOKENS 8u
#define ROWS 4u  // kernels::dense_batch_rows
#define each_sum(k) [[unroll]] for (uint k = 0u; k < TOKENS * ROWS; ++k)
#define each_row(r) [[unroll]] for (uint r = 0u; r < ROWS; ++r)
#define each_token(t) [[unroll]] for (uint t = 0u; t < TOKENS; ++t)

uvec2 advanced(uvec2 from, uint bytes) {
  uint carried, low = uaddCarry(from.x, bytes, carried);
  return uvec2(low, from.y + carried);
}

// Four columns of a row as stored.
uvec4 raw_quad(Words from, uint index) {
  return weight_element == element_f32 ? word_quad(from, index) : uvec4(word_pair(from, index), 0u, 0u);
}
vec4 widened(uvec4 raw) {
  if (weight_element == element_f32) return uintBitsToFloat(raw);
  if (weight_element == element_f16) return vec4(f16_pair(raw.x), f16_pair(raw.y));
  return vec4(bf16_pair(raw.x), bf16_pair(raw.y));
}

vec4 sums[TOKENS * ROWS];     // by token and row
uvec4 even[ROWS], odd[ROWS];  // of steps, in flight

// Pointers of the lane's quad of a step: a token's or row's data is at constant distances, which are part of the loads.
#define at_step(from, bytes, step_) Words(advanced(uvec2(from), within_row(step_, own) * (bytes)))
#define load_step(raw, step_)                                                   \
  {                                                                             \
    Words index_ = at_step(w, weight_element == element_f32 ? 16u : 8u, step_); \
    each_row(r) raw[r] = raw_quad(index_, min(r, rows - 1u) * quads);           \
  }
#define add_step(raw, step_)                                                   \
  if (quads % 64u == 0u || 64u * (step_) + own < quads) {                      \
    precise vec4 y[ROWS];                                                      \
    each_row(r) y[r] = widened(raw[r]);                                        \
    Words index_ = at_step(x, 16u, step_);                                     \
    each_token(t) {                                                            \
      vec4 activations = float_quad(index_, min(t, tile_tokens - 1u) * quads); \
      each_row(r) {                                                            \
        precise vec4 product = y[r] * activations;                             \
        sums[ROWS * t + r] = sums[ROWS * t + r] + product;                     \
      }                                                                        \
    }                                                                          \
  }
uint within_row(uint step_, uint own) {
  return quads % 64u == 0u ? min(step_, steps - 1u) * 64u + own : min(64u * step_ + own, quads - 1u);
}

// Sums over the lane's quads, the own-th of every 64. x: of the tile's first token; w: of the first row.
void multiply(Words x, Words w, uint own) {
  each_sum(k) sums[k] = vec4(0.0);
  load_step(even, 0u) load_step(odd, 1u) for (uint step_ = 0u; step_ < steps; step_ += 2u) {
    add_step(even, step_) load_step(even, step_ + 2u) if (steps % 2u == 0u || step_ + 1u < steps) {
      add_step(odd, step_ + 1u) load_step(odd, step_ + 3u)
    }
  }
}
// Sum of the four accumulators: half of an octet's sum.
float half_sum(vec4 v) {
  precise float sum = (v.x + v.y) + (v.z + v.w);
  return sum;
}

// Sums many numbers over the lanes at once: lanes exchange halves of the numbers.
#define fold(v, distance, count)                                                                                      \
  [[unroll]] for (uint k = 0u; k < count; ++k) {                                                                      \
    bool upper_ = (lane & distance) != 0u;                                                                            \
    precise float both = (upper_ ? v[k + count] : v[k]) + subgroupShuffleXor(upper_ ? v[k] : v[k + count], distance); \
    v[k] = both;                                                                                                      \
  }

// The product of one row and token, for narrow subgroups; devices that can choose a subgroup size do not need it.
float one_sum(Words x, Words w, uint token, uint row) {
  float part[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
    part[j] = 0.0;
    if (j < virtual_count) {
      precise vec4 low = vec4(0.0), high = vec4(0.0);
      for (uint octet = virtual_lane + j * virtual_width; octet < quads / 2u; octet += 32u) {
        uint of_token = token * quads + 2u * octet, of_row = row * quads + 2u * octet;
        precise vec4 product_low = widened(raw_quad(w, of_row)) * float_quad(x, of_token),
                     product_high = widened(raw_quad(w, of_row + 1u)) * float_quad(x, of_token + 1u);
        low = low + product_low;
        high = high + product_high;
      }
      precise float sum = half_sum(low) + half_sum(high);
      part[j] = sum;
    }
  }
  return virtual_sum(part);
}

void main() {
  find_lane();
  // Workgroups of different tiles of tokens are neighbours: weights come from memory once.
  uint number = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, worker = number / gl_NumWorkGroups.y;
  uint first_token = number % gl_NumWorkGroups.y * tile_tokens, count = state.at[state_count];
  uint end_token = min(count, first_token + tile_tokens);  // no early return: after one the driver diverges lanes
  Words x = Words(advanced(uvec2(input_), first_token * columns * 4u));

  const uint group_count = (rows + ROWS - 1u) / ROWS;
  for (uint group = worker * subgroups + subgroup_index; group < group_count; group += gl_NumWorkGroups.x * subgroups) {
    // Past the end the last rows are computed again, with the same bits.
    uint first_row = rows < ROWS ? 0u : min(ROWS * group, rows - ROWS), high, low;
    umulExtended(first_row, quads * (weight_element == element_f32 ? 16u : 8u), high, low);
    uvec2 first = advanced(uvec2(weight), low);
    first.y += high;
    Words w = Words(first);
    if (single) {
      float all[TOKENS * ROWS];
      each_sum(k) all[k] = 0.0;
      for (uint turn = 0u; turn < 2u; ++turn) {
        multiply(x, w, virtual_lane + 32u * turn);
        float v[TOKENS * ROWS];
        each_sum(k) v[k] = half_sum(sums[k]);
        fold(v, 1u, 16u) [[unroll]] for (uint k = 0u; k < 16u; ++k) {
          precise float both = all[k] + v[k];
          all[k] = turn == 0u ? v[k] : both;
        }
      }
      fold(all, 16u, 8u) fold(all, 8u, 4u) fold(all, 4u, 2u) fold(all, 2u, 1u)
          uint which = 16u * (lane & 1u) + (lane >> 1 & 15u),
               row = first_row + which % ROWS, token = first_token + which / ROWS;
      if (lane < 32u && token < end_token && row < rows) Floats(output_).at[token * rows + row] = all[0];
    } else {
      for (uint k = 0u; k < TOKENS * ROWS; ++k) {
        uint row = first_row + k % ROWS, token = first_token + k / ROWS;
        if (token >= end_token || row >= rows) continue;
        float sum = one_sum(x, w, min(k / ROWS, tile_tokens - 1u), k % ROWS);
        if (lane == 0u) Floats(output_).at[token * rows + row] = sum;
      }
    }
  }
}
