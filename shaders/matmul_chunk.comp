// SPDX-License-Identifier: MIT
// Products of coded weights and activations of a chunk of tokens as f16, summed in f32, with an epilogue (residual,
// rotary embedding and cache, gate). A workgroup has a tile of tokens (x) and rows (y), so that workgroups that run at
// the same time read the same weights. Weights become f16 on their way to shared memory; there, as in the activations,
// four neighbouring columns are in the order 0, 2, 1, 3.
// variant: matmul_chunk -DMATRIX=0 -DWIDE_LOADS=0
// variant: matmul_chunk_matrix -DMATRIX=1 -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if MATRIX
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint codec = 0;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const uint tile_rows = 128;
layout(constant_id = 6) const uint tile_tokens = 128;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint q_size = 256;
layout(constant_id = 9) const uint kv_size = 64;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const uint ring = 0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint max_tokens = 512;
layout(constant_id = 14) const uint slot_words = 0;
layout(constant_id = 15) const uint page_size = 0;
layout(constant_id = 16) const uint experts_used = 0;
layout(constant_id = 17) const uint list_tokens = 0;
layout(local_size_x_id = 0) in;
const uint subgroup_width = 0u;  // nothing here depends on it: the form with matrices runs in subgroups of 32 only
#include "subgroup.glsl"
#include "codec.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, factors, weight, output_, state, keys, values, rope, tiles;
};

#define UNSCALED
#define rope_of(position, pair) rope_from_turns(position, word_pair(rope, pair))
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"
#include "chunk_rows.glsl"
#if MATRIX
#include "half_codes.glsl"
#endif

const uint groups = rows / 4u, token_quads = columns / 8u;  // a quad of words has eight activations

// Finishes sums of four rows; the activations were scaled by 1 / factor.
void finish_sums(uint token, uint group, vec4 sums) {
  precise vec4 y = sums * uintBitsToFloat(factors.at[token]);
  finish(output_row(token), group, y);
}

#if MATRIX

// 64 columns of each row and token; each row is 16 bytes longer, so that neighbours begin in different banks. At the
// end the buffer holds the subgroups' sums.
const uint step_quads = 8u, row_stride = step_quads + 1u, step_blocks = step_quads / 4u;
shared uvec4 staged[(tile_rows + tile_tokens) * row_stride];

// A subgroup has half of the tile's tokens and up to 64 of its rows, in fragments of 16.
const uint token_fragments = tile_tokens / 32u, row_subgroups = workgroup_size / 64u,
           row_fragments = tile_rows / (16u * row_subgroups);

// An invocation's registers for the next columns: 8 columns of dense weights, or a block of 32 with its factors.
const uint weight_items = tile_rows * (dense ? step_quads : step_blocks),
           weight_slots = (weight_items + workgroup_size - 1u) / workgroup_size;
const uint activation_items = tile_tokens * step_quads,
           activation_slots = (activation_items + workgroup_size - 1u) / workgroup_size;
uvec4 next_codes[weight_slots], next_activations[activation_slots];
const uint small_planes = code_bits & 3u;
const bool has_more = codec == element_f32 || code_bits == 8u || small_planes != 0u;  // than 16 bytes of codes
uvec4 next_more[has_more ? weight_slots : 1u];
uvec4 next_factors[wide_factor ? weight_slots : 1u];
uint next_factor[weight_slots];

const uint row_units = dense ? step_quads : step_blocks;

void load_columns(uint first_row, uint first_token, uint last_token, uint quad) {
  LATER_UNROLLED for (uint i = 0u; i < weight_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < weight_items) {
      uint row = min(first_row + item / row_units, rows - 1u), unit = (dense ? quad : quad / 4u) + item % row_units,
           group = chunk.first_group + row / 4u, r = row & 3u;
      lane_addresses index = addresses_in_group(weight, group, unit);
      raw_codes raw = load_codes(index, r);
      next_codes[i] = raw.a;
      if (has_more) next_more[i] = raw.b;
      if (!dense) {
        uvec4 factor = load_factor(Words(index.group), r, unit);
        if (wide_factor) next_factors[i] = factor;
        else next_factor[i] = factor.x;
      }
    }
  }
  LATER_UNROLLED for (uint i = 0u; i < activation_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < activation_items)
      next_activations[i] =
          word_quad(input_, min(first_token + item / step_quads, last_token) * token_quads + quad + item % step_quads);
  }
}

// Eight columns: two words of codes, one code per byte, minus offset, times d, plus m.
uvec4 eight_f16(uint first, uint second, float offset, f16vec2 d, f16vec2 m) {
  return uvec4(four_columns(first, offset, d, m), four_columns(second, offset, d, m));
}

// `block`: the first block of the columns.
void stage_columns(uint block) {
  LATER_UNROLLED for (uint i = 0u; i < weight_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size, row = item / row_units,
         at = row * row_stride + (dense ? 1u : 4u) * (item % row_units);
    if (item < weight_items) {
      uvec4 a = next_codes[i];
      if (codec == element_f16) {
        staged[at] = uvec4((a.x & 0xffffu) | a.y << 16, (a.x >> 16) | (a.y & 0xffff0000u), (a.z & 0xffffu) | a.w << 16,
                           (a.z >> 16) | (a.w & 0xffff0000u));
      } else if (codec == element_bf16 || codec == element_f32) {
        raw_codes raw;
        raw.a = a;
        if (codec == element_f32) raw.b = next_more[i];
        octet w = octet_of(raw);
        staged[at] = uvec4(rounded(w.low.x, w.low.z), rounded(w.low.y, w.low.w), rounded(w.high.x, w.high.z),
                           rounded(w.high.y, w.high.w));
      } else {
        uvec4 factor = uvec4(next_factor[i]), low, high;
        if (wide_factor) factor = next_factors[i];
        block_factors by = factors_of(factor, row, block + item % row_units);
        raw_codes raw = raw_codes(a, has_more ? next_more[i] : uvec4(0u));
        block_words ahead = words_ahead(raw);
#define WORD(e) as_unsigned(plain_codes_at(ahead, raw, e))
        low = uvec4(WORD(0u), WORD(1u), WORD(2u), WORD(3u));
        high = uvec4(WORD(4u), WORD(5u), WORD(6u), WORD(7u));
        staged[at] = eight_f16(low.x, low.y, code_offset, by.d, by.m);
        staged[at + 1u] = eight_f16(low.z, low.w, code_offset, by.d, by.m);
        staged[at + 2u] = eight_f16(high.x, high.y, code_offset, by.upper_d, by.upper_m);
        staged[at + 3u] = eight_f16(high.z, high.w, code_offset, by.upper_d, by.upper_m);
      }
    }
  }
  LATER_UNROLLED for (uint i = 0u; i < activation_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < activation_items)
      staged[(tile_rows + item / step_quads) * row_stride + item % step_quads] = next_activations[i];
  }
}

void multiply(uint first_row, uint first_token, uint end_token) {
  uint own_rows = gl_SubgroupID / 2u * (16u * row_fragments), own_tokens = gl_SubgroupID % 2u * (16u * token_fragments);
  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums[4][4];
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) sums[r][t] =
      coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
  load_columns(first_row, first_token, end_token - 1u, 0u);
  for (uint quad = 0u; quad < token_quads; quad += step_quads) {
    barrier();  // the previous columns have been read
    stage_columns(quad / 4u);
    barrier();
    if (quad + step_quads < token_quads) load_columns(first_row, first_token, end_token - 1u, quad + step_quads);
    LATER_UNROLLED for (uint k = 0u; k < step_quads; k += 2u) {
      coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> x[4];
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments)
          coopMatLoad(x[t], staged, (tile_rows + own_tokens + 16u * t) * row_stride + k, row_stride,
                      gl_CooperativeMatrixLayoutColumnMajor);
      LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) if (r < row_fragments) {
        coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> w;
        coopMatLoad(w, staged, (own_rows + 16u * r) * row_stride + k, row_stride, gl_CooperativeMatrixLayoutRowMajor);
        LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) sums[r][t] =
            coopMatMulAdd(w, x[t], sums[r][t]);
      }
    }
  }
  // A fragment of 16 rows and 16 tokens at a time: four words of a token are four rows.
  uint index = gl_SubgroupID * 64u;
  barrier();
  for (uint fragment = 0u; fragment < token_fragments * row_fragments; ++fragment) {
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r)
        LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (token_fragments * r + t == fragment && t < token_fragments)
            coopMatStore(sums[r][t], staged, index, 4u, gl_CooperativeMatrixLayoutColumnMajor);
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
    for (uint item = gl_SubgroupInvocationID; item < 64u; item += 32u) {
      uint token = first_token + own_tokens + 16u * (fragment % token_fragments) + item / 4u;
      uint group = first_row / 4u + (own_rows + 16u * (fragment / token_fragments)) / 4u + item % 4u;
      if (token < end_token && group < groups) finish_sums(token, group, uintBitsToFloat(staged[index + item]));
    }
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  }
}

#else

// 16 columns of the tile at a time in shared memory: a quad of columns of each row and token. An invocation has four
// rows and four tokens at a time.
const uint step_quads = 4u, tile_height = tile_rows + tile_tokens + 1u;
shared vec4 staged[step_quads * tile_height];
const uint items = tile_rows / 4u * (tile_tokens / 4u), slots = (items + workgroup_size - 1u) / workgroup_size;
vec4 sums[slots * 4u];

vec4 as_f16(vec4 w) { return vec4(unpackHalf2x16(pack_f16(w.x, w.y)), unpackHalf2x16(pack_f16(w.z, w.w))); }

void multiply(uint first_row, uint first_token, uint end_token) {
  // The tile may have fewer tokens: missing ones are not multiplied, except for the rest of a round of invocations.
  uint tokens = min(end_token - first_token, tile_tokens),
       wanted = min(((tokens + 3u) / 4u * (tile_rows / 4u) + workgroup_size - 1u) / workgroup_size, slots);
  for (uint i = 0u; i < slots * 4u; ++i) sums[i] = vec4(0.0);
  for (uint quad = 0u; quad < columns / 4u; quad += step_quads) {
    barrier();  // the previous columns have been read
    for (uint i = gl_LocalInvocationIndex; i < tile_rows * step_quads; i += workgroup_size) {
      uint row = min(first_row + i / step_quads, rows - 1u);
      staged[i % step_quads * tile_height + i / step_quads] =
          as_f16(load_columns(weight, 4u * chunk.first_group + row, quad + i % step_quads));
    }
    for (uint i = gl_LocalInvocationIndex; i < tokens * step_quads; i += workgroup_size) {
      uvec2 words =
          word_pair(input_, min(first_token + i / step_quads, end_token - 1u) * (columns / 4u) + quad + i % step_quads);
      staged[i % step_quads * tile_height + tile_rows + i / step_quads] =
          vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)).xzyw;
    }
    barrier();
    for (uint slot = 0u; slot < wanted; ++slot) {
      uint item = gl_LocalInvocationIndex + slot * workgroup_size, row = 4u * (item % (tile_rows / 4u)),
           token = tile_rows + 4u * (item / (tile_rows / 4u));
      if (item < items) {
        precise vec4 sum[4];
        LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) sum[t] = sums[4u * slot + t];
        LATER_UNROLLED for (uint q = 0u; q < step_quads; ++q) {
          vec4 w[4];
          LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) w[r] = staged[q * tile_height + row + r];
          LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) {
            vec4 x = staged[q * tile_height + token + t];
            LATER_UNROLLED for (uint c = 0u; c < 4u; ++c) {
              precise vec4 product = vec4(w[0][c], w[1][c], w[2][c], w[3][c]) * x[c];
              sum[t] = sum[t] + product;
            }
          }
        }
        LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) sums[4u * slot + t] = sum[t];
      }
    }
  }
  for (uint i = 0u; i < 4u * slots; ++i) {
    uint item = gl_LocalInvocationIndex + i / 4u * workgroup_size, group = first_row / 4u + item % (tile_rows / 4u),
         token = first_token + 4u * (item / (tile_rows / 4u)) + i % 4u;
    if (item < items && token < end_token && group < groups) finish_sums(token, group, sums[i]);
  }
}

#endif

void main() {
  find_rows();
  if (chunk.first >= chunk.end) return;
  read_epilogue();
  multiply(gl_WorkGroupID.y * tile_rows, chunk.first, chunk.end);
}
