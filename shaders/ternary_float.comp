// SPDX-License-Identifier: MIT
// Ternary weights times f32 activations, with a norm before and an epilogue (scale, residual, rotary embedding and
// cache, gate). A subgroup takes groups of 4 rows; virtual lanes stride over tiles of 16 columns, and a code adds,
// skips or subtracts an activation.
// variant: ternary_float -DWIDE_LOADS=0
// variant: ternary_float_cpu -DWIDE_LOADS=1
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
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint prologue = 0;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint tile_tokens = 1;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint q_size = 256;
layout(constant_id = 9) const uint kv_size = 64;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const float rope_theta = 500000.0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint subgroup_width = 0;
layout(constant_id = 14) const uint slot_words = 0;
layout(constant_id = 15) const uint page_size = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool normalises = prologue == 3u;  // with a norm first
const uint norm_width = normalises ? columns : 0u;
#include "norm.glsl"

#if WIDE_LOADS
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, scales, output_, state, keys, values; }
pushed;
Words input_, norm_weight, weight, scales, output_, state, keys, values;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  weight = pushed.weight;
  scales = pushed.scales;
  output_ = pushed.output_;
  state = pushed.state;
  keys = pushed.keys;
  values = pushed.values;
}
#else
layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, scales, output_, state, keys, values; };
#define take_pushed()
#endif

#define slot_of(position) min(position, context)
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"
const uint tiles = columns / 16u, quads = columns / 4u;

float inverse[8];  // 1 / root mean square of each token of the tile

// Columns 4 * quad .. 4 * quad + 3 of token t of the tile.
vec4 activations(uint first_token, uint t, uint quad) {
  precise vec4 y = float_quad(input_, (first_token + t) * quads + quad);
  if (normalises) y = (y * float_quad(norm_weight, quad)) * inverse[t];
  return y;
}

// The codes at bit `at` of four words as -1, 0, +1: they become the last bits of a mantissa in whose unit they count.
vec4 signs(uvec4 words, uint at) {
  uvec4 half_words = at < 16u ? words : words >> 16;
  uint bit = at & 15u, power = (150u - bit) << 23;
  precise vec4 sign = uintBitsToFloat((half_words & (3u << bit)) | power) - uintBitsToFloat(power | 1u << bit);
  return sign;
}

// Columns 4f .. 4f + 3 of a tile; column 4f + b has its codes at bit 8b + 2f. The products are exact, so fma rounds
// once however it is computed.
void accumulate(inout vec4 sums, uvec4 codes, uint f, vec4 y) {
  LATER_UNROLLED for (uint b = 0u; b < 4u; ++b) sums = fma(signs(codes, 8u * b + 2u * f), vec4(y[b]), sums);
}

void main() {
  take_pushed();
  find_lane();
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count];
  if (first_token >= count) return;
  uint tokens = min(count - first_token, tile_tokens);
  if (normalises)
    for (uint t = 0u; t < tokens; ++t) {
      if (t != 0u) workgroup_barrier();  // the previous token's sums have been read
      float largest, r = inverse_rms(input_, (first_token + t) * quads, norm_weight, eps, largest);
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (i == t) inverse[i] = r;
    }
  read_epilogue();

  // Tiles of a lane. If they are few, a CPU keeps their activations in registers for all rows; idle lanes have zeros.
  uint steps = (tiles + subgroup_size - 1u) / subgroup_size;
  bool resident = WIDE_LOADS != 0 && subgroup_width != 0u && subgroup_width <= 32u && tile_tokens * steps <= 16u;
  vec4 x[64];
  if (resident) LATER_UNROLLED for (uint i = 0u; i < 16u; ++i) if (i < tile_tokens * steps) {
      uint tile = lane + i % steps * subgroup_size, t = i / steps;
      LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) x[4u * i + f] =
          tile < tiles && t < tokens ? activations(first_token, t, 4u * tile + f) : vec4(0.0);
    }

  // Every lane keeps the sums of one token and group until all lanes have some, then all finish at once; subgroups of 4
  // keep two each.
  vec4 kept[2];
  uint kept_group[2], kept_token[2], filled = 0u;
  uint room = max(subgroup_size, 8u), groups = rows / 4u;
  uint stride = gl_NumWorkGroups.x * subgroups;
  for (uint group = gl_WorkGroupID.x * subgroups + subgroup_index; group < groups; group += stride) {
    vec4 part[8][8];  // by token and virtual lane of the invocation
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) part[t][j] = vec4(0.0);
    if (resident) {
      uvec4 codes;
      LATER_UNROLLED for (uint i = 0u; i < 16u; ++i) if (i < tile_tokens * steps) {
        uint k = i / tile_tokens, t = i % tile_tokens;
        if (t == 0u) codes = word_quad(weight, group * tiles + min(lane + k * subgroup_size, tiles - 1u));
        LATER_UNROLLED for (uint f = 0u; f < 4u; ++f)
            accumulate(part[t][k & (virtual_count - 1u)], codes, f, x[4u * (t * steps + k) + f]);
      }
    } else
      for (uint j = 0u; j < virtual_count; ++j) {
        vec4 sums[8];
        LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) sums[t] = vec4(0.0);
        for (uint tile = virtual_lane + j * virtual_width; tile < tiles; tile += 32u) {
          uvec4 codes = word_quad(weight, group * tiles + tile);
          LATER_UNROLLED for (uint f = 0u; f < 4u; ++f)
              LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) if (t < tile_tokens && t < tokens)
                  accumulate(sums[t], codes, f, activations(first_token, t, 4u * tile + f));
        }
        LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (i == j)
            part[t][i] = sums[t];
      }
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) if (t < tile_tokens && t < tokens) {
      float sum = virtual_sum4(fold_virtual(part[t]));
      vec4 all = vec4(subgroupShuffle(sum, 0u), subgroupShuffle(sum, lane_quarter),
                      subgroupShuffle(sum, 2u * lane_quarter), subgroupShuffle(sum, 3u * lane_quarter));
      LATER_UNROLLED for (uint k = 0u; k < 2u;
                          ++k) if (k * subgroup_size < room && lane + k * subgroup_size == filled) {
        kept[k] = all;
        kept_group[k] = group;
        kept_token[k] = first_token + t;
      }
      ++filled;
    }
    if (filled + tokens <= room && group + stride < groups) continue;
    LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) if (k * subgroup_size < room && lane + k * subgroup_size < filled) {
      precise vec4 y = kept[k] * row_scales(kept_group[k]);
      finish(kept_token[k], kept_group[k], y);
    }
    filled = 0u;
  }
}
