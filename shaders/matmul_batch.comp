// SPDX-License-Identifier: MIT
// Products of weights in blocks and a small batch of tokens that `fixed` prepared: a subgroup has four rows at a time
// and reads and unpacks their codes once for all tokens of the tile. A lane is one or several virtual lanes; the bits
// are those of matmul.
// variant: matmul_batch -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: matmul_batch_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
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
layout(constant_id = 3) const uint codec = 3;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const uint tile_tokens = 8;
layout(constant_id = 6) const uint head_dim = 64;
layout(constant_id = 7) const uint q_size = 256;
layout(constant_id = 8) const uint kv_size = 64;
layout(constant_id = 9) const uint context = 256;
layout(constant_id = 10) const uint cache_element = 0;
layout(constant_id = 11) const uint subgroup_width = 0;
layout(constant_id = 12) const uint slot_words = 0;
layout(constant_id = 13) const uint page_size = 0;
layout(constant_id = 14) const uint tile_rows = 4;
layout(constant_id = 15) const uint experts_used = 0;
layout(constant_id = 16) const uint own_input = 0;
layout(constant_id = 17) const uint list_tokens = 8;
layout(constant_id = 18) const uint ring = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "codec.glsl"

layout(push_constant, scalar) uniform Push { Words input_, weight, output_, state, keys, values, rope, tiles; };

#define UNSCALED
#define rope_of(position, pair) rope_from_turns(position, word_pair(rope, pair))
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"

#include "listed.glsl"

const bool single = subgroup_width >= 32u;  // a lane is one virtual lane
#define each_token(t) LATER_UNROLLED for (uint t = 0u; t < 8u; ++t)
#define each_row(r) LATER_UNROLLED for (uint r = 0u; r < 4u; ++r)

// A block of x: bits 16 .. 23, 8 .. 15 and 0 .. 7 of 32 columns, and scale and sums.
struct fixed_block {
  uvec4 upper[2], middle[2], lower[2], rest;
};

fixed_block block_of_x(uint token, uint block) {
  uint at = token * 7u * blocks + block;
  fixed_block x;
  LATER_UNROLLED for (uint h = 0u; h < 2u; ++h) {
    x.upper[h] = word_quad(input_, at + h * blocks);
    x.middle[h] = word_quad(input_, at + (2u + h) * blocks);
    x.lower[h] = word_quad(input_, at + (4u + h) * blocks);
  }
  x.rest = word_quad(input_, at + 6u * blocks);
  return x;
}

#if INTEGER_DOT
int signed_dot(uint codes, uint x) { return dotPacked4x8EXT(int(codes), int(x)); }
int mixed_dot(uint codes, uint x) { return dotPacked4x8EXT(int(codes), x); }
#else
ivec4 signed_bytes(int word) {
  return ivec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8), bitfieldExtract(word, 16, 8), word >> 24);
}
int sum_of(ivec4 v) { return (v.x + v.y) + (v.z + v.w); }
int signed_dot(uint codes, uint x) { return sum_of(signed_bytes(int(codes)) * signed_bytes(int(x))); }
int mixed_dot(uint codes, uint x) {
  return sum_of(signed_bytes(int(codes)) * ivec4(x & 255u, x >> 8 & 255u, x >> 16 & 255u, x >> 24));
}
#endif

// As a float: the part below the upper bytes is rounded first, then the sum.
float whole(ivec2 sums) {
  precise float sum = float(sums.x) * 65536.0 + float(sums.y);
  return sum;
}

// Adds a block of a row, whose codes are eight words.
float add_block(float sum, uint words[8], vec4 factor, fixed_block x) {
  ivec2 of_half[2];
  LATER_UNROLLED for (uint h = 0u; h < 2u; ++h) {
    int upper = 0, middle = 0, lower = 0;
    LATER_UNROLLED for (uint e = 0u; e < 4u; ++e) {
      upper += signed_dot(words[4u * h + e], x.upper[h][e]);
      middle += mixed_dot(words[4u * h + e], x.middle[h][e]);
      lower += mixed_dot(words[4u * h + e], x.lower[h][e]);
    }
    of_half[h] = ivec2(upper, middle * 256 + lower);
  }
  float scale_ = uintBitsToFloat(x.rest.x);
  ivec2 of_x = ivec2(x.rest.yz);
  precise float out_ = sum;
  if (by_halves_of_block) {
    out_ = out_ + whole(of_half[0]) * (factor.x * scale_);
    out_ = out_ + whole(of_half[1]) * (factor.y * scale_);
    if (has_least) {
      ivec2 of_low = ivec2(0);
      LATER_UNROLLED for (uint e = 0u; e < 4u; ++e) of_low +=
          ivec2(signed_dot(0x01010101u, x.upper[0][e]),
                mixed_dot(0x01010101u, x.middle[0][e]) * 256 + mixed_dot(0x01010101u, x.lower[0][e]));
      out_ = out_ + whole(of_low) * (factor.z * scale_);
      out_ = out_ + whole(of_x - of_low) * (factor.w * scale_);
    }
    return out_;
  }
  out_ = out_ + whole(of_half[0] + of_half[1] - late_zero * of_x) * (factor.x * scale_);
  if (has_least) out_ = out_ + whole(of_x) * (factor.z * scale_);
  return out_;
}

vec4 sums[8];  // of the four rows, by token

// Sums over virtual lane j of the lane. Missing tokens repeat the last one.
void multiply(tile_range tile, uint group, uint j) {
  each_token(t) sums[t] = vec4(0.0);
  for (uint block = virtual_lane + j * virtual_width; block < blocks; block += 32u) {
    uint words[4][8];
    vec4 factor[4];
    lane_addresses from = addresses_in_group(weight, tile.first_group + group, block);
    raw_factors factors = load_factors(from, block);
    each_row(r) {
      raw_codes raw = load_codes(from, r);
      block_words ahead = words_ahead(raw);
      LATER_UNROLLED for (uint e = 0u; e < 8u; ++e) words[r][e] = code_word_at(ahead, raw, e);
      factor[r] = f16_factors(factors, r, block);
    }
    each_token(t) if (t < tile_tokens) {
      fixed_block x = block_of_x(input_of(tile, min(t, tile.tokens - 1u)), block);
      each_row(r) sums[t][r] = add_block(sums[t][r], words[r], factor[r], x);
    }
  }
}

// Sums of 32 numbers over the lanes, the four rows of each token: lane 4 t + r ends with row r of token t. Lanes
// exchange halves of the numbers.
#define fold(distance, count)                                                                                         \
  LATER_UNROLLED for (uint k = 0u; k < count; ++k) {                                                                  \
    bool upper_ = (lane & distance) != 0u;                                                                            \
    precise float both = (upper_ ? v[k + count] : v[k]) + subgroupShuffleXor(upper_ ? v[k] : v[k + count], distance); \
    v[k] = both;                                                                                                      \
  }
float reduced() {
  float v[32];
  each_token(t) each_row(r) v[4u * t + r] = sums[t][r];
  fold(16u, 16u) fold(8u, 8u) fold(4u, 4u) fold(2u, 2u) fold(1u, 1u) return v[0];
}

void main() {
  find_lane();
  uint groups = rows / 4u;
  tile_range tile = find_tile(gl_WorkGroupID.y);
  if (listed && !tile.wanted) return;
  read_epilogue();
  for (uint group = gl_WorkGroupID.x * (tile_rows / 4u) + subgroup_index; group < groups;
       group += gl_NumWorkGroups.x * (tile_rows / 4u)) {
    if (single) {
      multiply(tile, group, 0u);
      float sum = reduced();
      uint own = 4u * (lane & 7u);
      vec4 y = vec4(subgroupShuffle(sum, own), subgroupShuffle(sum, own + 1u), subgroupShuffle(sum, own + 2u),
                    subgroupShuffle(sum, own + 3u));
      if (lane < tile.tokens && tile.wanted) finish(row_of(tile, lane), group, y);
    } else {
      vec4 part[8][8];  // by token and virtual lane of the invocation
      for (uint j = 0u; j < virtual_count; ++j) {
        multiply(tile, group, j);
        each_token(t) part[t][j] = sums[t];
      }
      vec4 kept[2];
      each_token(t) {
        float sum = virtual_sum4(fold_virtual(part[t]));
        vec4 all = vec4(subgroupShuffle(sum, 0u), subgroupShuffle(sum, lane_quarter),
                        subgroupShuffle(sum, 2u * lane_quarter), subgroupShuffle(sum, 3u * lane_quarter));
        if (lane == t % subgroup_size) kept[t / subgroup_size] = all;
      }
      LATER_UNROLLED for (uint k = 0u; k < 2u;
                          ++k) if (k * subgroup_size < 8u && lane + k * subgroup_size < tile.tokens && tile.wanted)
          finish(row_of(tile, lane + k * subgroup_size), group, kept[k]);
    }
  }
}
