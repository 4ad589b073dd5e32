// SPDX-License-Identifier: MIT
// ternary_batch by cooperative matrices of int8: a workgroup has a tile of rows and tokens and stages 512 columns at a
// time in shared memory as int8, of which each of its eight subgroups has 64. Sums are integers, so the bits are those
// of ternary_matmul.
// variant: ternary_batch_matrix -DINTEGER_DOT=1 -DWIDE_LOADS=0
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_integer_dot_product : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 256;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint epilogue = 0;
layout(constant_id = 4) const uint tile_tokens = 8;
layout(constant_id = 5) const uint head_dim = 64;
layout(constant_id = 6) const uint q_size = 256;
layout(constant_id = 7) const uint kv_size = 64;
layout(constant_id = 8) const uint context = 256;
layout(constant_id = 9) const float rope_theta = 500000.0;
layout(constant_id = 10) const uint cache_element = 0;
layout(constant_id = 11) const uint subgroup_width = 32;
layout(constant_id = 12) const uint slot_words = 0;
layout(constant_id = 13) const uint page_size = 0;
layout(constant_id = 14) const uint tile_rows = 16;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, factors, weight, scales, output_, state, keys, values; };

#define slot_of(position) min(position, context)
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"

const uint parts = workgroup_size / subgroup_width,
           step_tiles = 4u * parts;  // of 16 columns; a part is a subgroup's columns
const uint tiles = columns / 16u, groups = rows / 4u, tile_groups = tile_rows / 4u, row_fragments = tile_rows / 16u,
           token_fragments = tile_tokens / 8u;

// Rows of codes, then tokens of activations, each 16 bytes longer, so that neighbours begin in different banks. At the
// end the buffer holds sums by part, token and row.
const uint row_stride = step_tiles + 1u, staged_quads = (tile_rows + tile_tokens) * row_stride,
           sum_stride = tile_groups + 1u, sum_quads = parts * tile_tokens * sum_stride;
shared uvec4 staged[staged_quads > sum_quads ? staged_quads : sum_quads];

// An invocation's registers for the next columns.
const uint code_items = tile_groups * step_tiles, code_slots = (code_items + workgroup_size - 1u) / workgroup_size;
const uint activation_items = tile_tokens * step_tiles,
           activation_slots = (activation_items + workgroup_size - 1u) / workgroup_size;
uvec4 next_codes[code_slots], next_activations[activation_slots];

// Missing columns have codes of 0; missing rows and tokens repeat the last one.
void load_columns(uint first_group, uint first_token, uint tokens, uint first_tile) {
  uint tile = first_tile + gl_LocalInvocationIndex % step_tiles, from = min(tile, tiles - 1u);
  LATER_UNROLLED for (uint i = 0u; i < code_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < code_items) {
      next_codes[i] = word_quad(weight, min(first_group + item / step_tiles, groups - 1u) * tiles + from);
      if (tile >= tiles) next_codes[i] = uvec4(0u);
    }
  }
  LATER_UNROLLED for (uint i = 0u; i < activation_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < activation_items)
      next_activations[i] = word_quad(input_, (first_token + min(item / step_tiles, tokens - 1u)) * tiles + from);
  }
}

void stage_columns() {
  LATER_UNROLLED for (uint i = 0u; i < code_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size,
         at = 4u * (item / step_tiles) * row_stride + item % step_tiles;
    if (item < code_items) {
      unpacked_codes u = unpack(next_codes[i]);
      LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) staged[at + r * row_stride] = u.row[r];
    }
  }
  LATER_UNROLLED for (uint i = 0u; i < activation_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size;
    if (item < activation_items)
      staged[(tile_rows + item / step_tiles) * row_stride + item % step_tiles] = next_activations[i];
  }
}

#define sums_of coopmat<int, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>

void main() {
  uint linear = gl_WorkGroupID.y * gl_NumWorkGroups.x +
                gl_WorkGroupID.x;  // workgroups that run at the same time have tiles of tokens of the same rows
  uint first_token = linear % gl_NumWorkGroups.y * tile_tokens, first_group = linear / gl_NumWorkGroups.y * tile_groups,
       count = state.at[state_count];
  uint tokens = min(max(count, first_token + 1u) - first_token,
                    tile_tokens);  // no early return: after one the driver diverges lanes
  read_epilogue();
  sums_of sums[4][4];
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) sums[r][t] = sums_of(0);
  load_columns(first_group, first_token, tokens, 0u);
  for (uint tile = 0u; tile < tiles; tile += step_tiles) {
    barrier();  // the previous columns have been read
    stage_columns();
    barrier();
    if (tile + step_tiles < tiles) load_columns(first_group, first_token, tokens, tile + step_tiles);
    LATER_UNROLLED for (uint half_ = 0u; half_ < 2u; ++half_) {
      uint k = 4u * gl_SubgroupID + 2u * half_;
      coopmat<int8_t, gl_ScopeSubgroup, 32, 8, gl_MatrixUseB> x[4];
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) coopMatLoad(
          x[t], staged, (tile_rows + 8u * t) * row_stride + k, row_stride, gl_CooperativeMatrixLayoutColumnMajor);
      LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) if (r < row_fragments) {
        coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA> w;
        coopMatLoad(w, staged, 16u * r * row_stride + k, row_stride, gl_CooperativeMatrixLayoutRowMajor);
        LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) sums[r][t] =
            coopMatMulAdd(w, x[t], sums[r][t]);
      }
    }
  }
  barrier();
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r)
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (r < row_fragments && t < token_fragments)
          coopMatStore(sums[r][t], staged, (gl_SubgroupID * tile_tokens + 8u * t) * sum_stride + 4u * r, sum_stride,
                       gl_CooperativeMatrixLayoutColumnMajor);
  barrier();
  for (uint item = gl_LocalInvocationIndex; item < tile_tokens * tile_groups; item += workgroup_size) {
    uint token = item / tile_groups, group = item % tile_groups;
    ivec4 all = ivec4(0);
    LATER_UNROLLED for (uint part = 0u; part < parts; ++part) all +=
        ivec4(staged[(part * tile_tokens + token) * sum_stride + group]);
    if (first_token + token < count && first_group + group < groups) {
      uvec2 word = word_pair(factors, first_token + token);
      precise vec4 y = vec4(all - int(word.y)) * (uintBitsToFloat(word.x) * row_scales(first_group + group));
      finish(first_token + token, first_group + group, y);
    }
  }
}
