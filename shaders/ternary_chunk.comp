// SPDX-License-Identifier: MIT
// Ternary weights times int8 activations of many tokens, with what comes after (scale, residual, rotary embedding and
// cache, gate). A workgroup takes a tile of rows (x) and tokens (y). Sums are integers, so every form gives the bits of
// ternary_matmul.
// variant: ternary_chunk -DMATRIX=0 -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: ternary_chunk_portable -DMATRIX=0 -DINTEGER_DOT=0 -DWIDE_LOADS=0
// variant: ternary_chunk_matrix -DMATRIX=1 -DINTEGER_DOT=1 -DWIDE_LOADS=0
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
#if MATRIX
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint epilogue = 0;
layout(constant_id = 4) const uint tile_rows = 128;
layout(constant_id = 5) const uint tile_tokens = 128;
layout(constant_id = 6) const uint head_dim = 64;
layout(constant_id = 7) const uint q_size = 256;
layout(constant_id = 8) const uint kv_size = 64;
layout(constant_id = 9) const uint context = 256;
layout(constant_id = 10) const float rope_theta = 500000.0;
layout(constant_id = 11) const uint cache_element = 0;
layout(constant_id = 12) const uint max_tokens = 512;
layout(local_size_x_id = 0) in;
const uint subgroup_width = 0u;  // nothing here depends on it: the form with matrices runs in subgroups of 32 alone
#include "subgroup.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, factors, weight, scales, output_, state, keys, values; };

#include "epilogue.glsl"

const uint tiles = columns / 16u, groups = rows / 4u;

// Scales the sums of four rows of codes 0, 1, 2, which stand for -1, 0, +1, and hands them on.
void finish_sums(uint token, uint group, ivec4 sums) {
  uvec2 word = word_pair(factors, token);
  precise vec4 y = vec4(sums - int(word.y)) * (uintBitsToFloat(word.x) * row_scales(group));
  finish(token, group, y);
}

#if MATRIX

// Codes and activations of 128 or 64 columns as int8, a row or a token behind the other; 16 bytes more than a row takes
// let neighbouring rows begin in different banks. In the end the place of the subgroups' sums.
const uint step_quads = columns % 128u == 0u ? 8u : 4u, row_stride = step_quads + 1u;
shared uvec4 staged[(tile_rows + tile_tokens) * row_stride];

// A subgroup has 32 tokens and up to 64 rows of the tile.
const uint subgroup_tokens = 32u, token_subgroups = tile_tokens / subgroup_tokens;
const uint row_subgroups = workgroup_size / 32u / token_subgroups, row_fragments = tile_rows / (16u * row_subgroups);

// What an invocation carries of the next columns.
const uint code_items = tile_rows / 4u * step_quads, code_slots = (code_items + workgroup_size - 1u) / workgroup_size;
const uint activation_slots = (tile_tokens * step_quads + workgroup_size - 1u) / workgroup_size;
uvec4 next_codes[code_slots], next_activations[activation_slots];

void load_columns(uint first_group, uint first_token, uint last_token, uint quad) {
  LATER_UNROLLED for (uint i = 0u; i < code_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < code_items)
      next_codes[i] =
          word_quad(weight, min(first_group + item / step_quads, groups - 1u) * tiles + quad + item % step_quads);
  }
  LATER_UNROLLED for (uint i = 0u; i < activation_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < tile_tokens * step_quads)
      next_activations[i] =
          word_quad(input_, min(first_token + item / step_quads, last_token) * tiles + quad + item % step_quads);
  }
}

void stage_columns() {
  LATER_UNROLLED for (uint i = 0u; i < code_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size,
         at = 4u * (item / step_quads) * row_stride + item % step_quads;
    if (item < code_items) {
      unpacked_codes u = unpack(next_codes[i]);
      LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) staged[at + r * row_stride] = u.row[r];
    }
  }
  LATER_UNROLLED for (uint i = 0u; i < activation_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < tile_tokens * step_quads)
      staged[(tile_rows + item / step_quads) * row_stride + item % step_quads] = next_activations[i];
  }
}

void multiply(uint first_group, uint first_token, uint end_token) {
  uint own_rows = gl_SubgroupID / token_subgroups * (16u * row_fragments),
       own_tokens = gl_SubgroupID % token_subgroups * subgroup_tokens;
  coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums[4][2];
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) LATER_UNROLLED for (uint t = 0u; t < 2u; ++t) sums[r][t] =
      coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0);
  load_columns(first_group, first_token, end_token - 1u, 0u);
  for (uint quad = 0u; quad < tiles; quad += step_quads) {
    barrier();  // the columns before have been read
    stage_columns();
    barrier();
    if (quad + step_quads < tiles) load_columns(first_group, first_token, end_token - 1u, quad + step_quads);
    LATER_UNROLLED for (uint k = 0u; k < step_quads; k += 2u) {
      coopmat<int8_t, gl_ScopeSubgroup, 32, 16, gl_MatrixUseB> x[2];
      LATER_UNROLLED for (uint t = 0u; t < 2u; ++t)
          coopMatLoad(x[t], staged, (tile_rows + own_tokens + 16u * t) * row_stride + k, row_stride,
                      gl_CooperativeMatrixLayoutColumnMajor);
      LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) if (r < row_fragments) {
        coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA> w;
        coopMatLoad(w, staged, (own_rows + 16u * r) * row_stride + k, row_stride, gl_CooperativeMatrixLayoutRowMajor);
        LATER_UNROLLED for (uint t = 0u; t < 2u; ++t) sums[r][t] = coopMatMulAdd(w, x[t], sums[r][t]);
      }
    }
  }
  // A fragment of 16 rows and 16 tokens at a time: four words of a token are four rows.
  uint place = gl_SubgroupID * 64u;
  barrier();
  for (uint fragment = 0u; fragment < 2u * row_fragments; ++fragment) {
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r)
        LATER_UNROLLED for (uint t = 0u; t < 2u; ++t) if (2u * r + t == fragment)
            coopMatStore(sums[r][t], staged, place, 4u, gl_CooperativeMatrixLayoutColumnMajor);
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
    for (uint item = gl_SubgroupInvocationID; item < 64u; item += 32u) {
      uint token = first_token + own_tokens + 16u * (fragment & 1u) + item / 4u,
           group = first_group + (own_rows + 16u * (fragment / 2u)) / 4u + item % 4u;
      if (token < end_token && group < groups) finish_sums(token, group, ivec4(staged[place + item]));
    }
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  }
}

#else

// An invocation has 4 tokens of a group of 4 rows at a time; neighbours have the next tokens, then the next group.
void multiply(uint first_group, uint first_token, uint end_token) {
  const uint token_quads = tile_tokens / 4u;
  for (uint item = gl_LocalInvocationIndex; item < tile_rows / 4u * token_quads; item += workgroup_size) {
    uint group = first_group + item / token_quads, token = first_token + 4u * (item % token_quads);
    if (group >= groups || token >= end_token) continue;
    uint from[4];
    ivec4 sums[4];
    LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) {
      from[t] = min(token + t, end_token - 1u) * tiles;
      sums[t] = ivec4(0);
    }
    for (uint tile = 0u; tile < tiles; ++tile) {
      unpacked_codes codes = unpack(word_quad(weight, group * tiles + tile));
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t)
          accumulate(sums[t], codes, prepare(word_quad(input_, from[t] + tile)));
    }
    for (uint t = 0u; t < 4u && token + t < end_token; ++t) {  // a loop, so that what follows is there but once
      ivec4 own = sums[0];
      LATER_UNROLLED for (uint k = 1u; k < 4u; ++k) if (k == t) own = sums[k];
      finish_sums(token + t, group, own);
    }
  }
}

#endif

void main() {
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = min(state.at[state_count], max_tokens);
  if (first_token >= count) return;
  read_epilogue();
  multiply(gl_WorkGroupID.x * (tile_rows / 4u), first_token, min(count, first_token + tile_tokens));
}
