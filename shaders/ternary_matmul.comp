// SPDX-License-Identifier: MIT
// Ternary weights times int8 activations, with what comes before (norm, quantisation) and after (scale, residual, rotary embedding
// and cache, gate). A subgroup takes groups of 4 rows; its lanes stride over tiles of 16 columns, one 16-byte load each.
// variant: ternary_matmul -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: ternary_matmul_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
// variant: ternary_matmul_cpu -DINTEGER_DOT=0 -DWIDE_LOADS=1
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
layout(constant_id = 13) const uint gate = 0;
layout(constant_id = 14) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool quantises = prologue == 1u;  // the norm stands in front
const uint norm_width = quantises ? columns : 0u;
#include "norm.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, factors, weight, scales, output_, state, keys, values; };

#include "epilogue.glsl"
const uint tiles = columns / 16u;

// A CPU copies the activations of its tokens where reading is cheap.
#if WIDE_LOADS
const uint staged_tokens = tile_tokens * tiles <= 1536u ? tile_tokens : 0u;
#else
const uint staged_tokens = 0u;
#endif
const uint shared_tokens = quantises ? 1u : staged_tokens;

// Activations of the prologue or of the staged tokens.
shared uvec4 shared_x[shared_tokens * tiles + 1u];

uvec4 activations(uint first_token, uint t, uint tile) {
  if (quantises) return shared_x[tile];
  if (staged_tokens != 0u) return shared_x[t * tiles + tile];
  return word_quad(input_, (first_token + t) * tiles + tile);
}

// Fills shared_x; gives 1 / s, and in `sum` what shared_sum() says of the int8 values.
float quantise_input(out int sum) {
  float largest, r = inverse_rms(input_, 0u, norm_weight, eps, largest), m = largest_activation(largest, r);
  precise float s = 127.0 / m;
  sum = 0;
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, 0u, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i)
      if (owns_quad(chunk, i)) {
        ivec4 q = quantised(normalised(i, r), s);
        uint quad = norm_quad(chunk, i);
        shared_x[quad / 4u][quad & 3u] = packed(q);
        sum += sum_of(q);
      }
  }
  sum = shared_sum(sum);
  precise float factor = m / 127.0;
  return factor;
}

void main() {
  find_place();
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count];
  if (first_token >= count) return;
  uint tokens = min(count - first_token, tile_tokens);

  float own_factor = 0.0;
  int own_sum = 0;
  if (!quantises && staged_tokens != 0u) {
    for (uint i = gl_LocalInvocationIndex; i < tokens * tiles; i += workgroup_size) shared_x[i] = word_quad(input_, first_token * tiles + i);
    workgroup_barrier();
  }
  if (quantises) {
    own_factor = quantise_input(own_sum);
    workgroup_barrier();
    own_sum = whole_sum(own_sum);
  }

  // Tiles of a lane. Where they are few, a CPU keeps their activations at hand for all rows; idle lanes have zeros.
  uint steps = (tiles + subgroup_size - 1u) / subgroup_size;
  bool resident = WIDE_LOADS != 0 && subgroup_width != 0u && tile_tokens * steps <= 16u;
  prepared x[16];
  if (resident)
    LATER_UNROLLED for (uint i = 0u; i < 16u; ++i)
      if (i < tile_tokens * steps) {
        uint tile = lane + i % steps * subgroup_size, t = i / steps;
        x[i] = prepare(tile < tiles && t < tokens ? activations(first_token, t, tile) : uvec4(0u));
      }

  read_epilogue();

  // Every lane keeps the sums of one token and group until all lanes have some, then all finish at once; subgroups of 4 keep two each.
  ivec4 kept[2];
  uint kept_group[2], kept_token[2], filled = 0u;
  uint room = max(subgroup_size, 8u), groups = rows / 4u;
  uint stride = gl_NumWorkGroups.x * gl_NumSubgroups;
  for (uint group = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; group < groups; group += stride) {
    ivec4 sums[8];
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) sums[t] = ivec4(0);
    if (resident) {
      unpacked_codes unpacked;
      LATER_UNROLLED for (uint i = 0u; i < 16u; ++i)
        if (i < tile_tokens * steps) {
          uint k = i / tile_tokens, t = i % tile_tokens;
          if (t == 0u) unpacked = unpack(word_quad(weight, group * tiles + min(lane + k * subgroup_size, tiles - 1u)));
          accumulate(sums[t], unpacked, x[t * steps + k]);
        }
    } else for (uint tile = lane; tile < tiles; tile += subgroup_size) {
      uvec4 codes = word_quad(weight, group * tiles + tile);
      if (tile_tokens == 1u) {
        accumulate_one(sums[0], codes, activations(first_token, 0u, tile));
      } else {
        unpacked_codes unpacked = unpack(codes);
        LATER_UNROLLED for (uint t = 0u; t < 8u; ++t)
          if (t < tile_tokens && t < tokens) accumulate(sums[t], unpacked, prepare(activations(first_token, t, tile)));
      }
    }
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t)
      if (t < tile_tokens && t < tokens) {
        ivec4 all = subgroup_sum4(sums[t]);
        LATER_UNROLLED for (uint k = 0u; k < 2u; ++k)
          if (k * subgroup_size < room && lane + k * subgroup_size == filled) {
            kept[k] = all;
            kept_group[k] = group;
            kept_token[k] = first_token + t;
          }
        ++filled;
      }
    if (filled + tokens <= room && group + stride < groups) continue;
    LATER_UNROLLED for (uint k = 0u; k < 2u; ++k)
      if (k * subgroup_size < room && lane + k * subgroup_size < filled) {
        float factor = own_factor;
        int activation_sum = own_sum;
        if (!quantises) {
          uvec2 word = word_pair(factors, kept_token[k]);
          factor = uintBitsToFloat(word.x);
          activation_sum = int(word.y);
        }
        // Codes 0, 1, 2 stand for -1, 0, +1.
        precise vec4 y = vec4(kept[k] - activation_sum) * (factor * row_scales(kept_group[k]));
        finish(kept_token[k], kept_group[k], y);
      }
    filled = 0u;
  }
}
