// SPDX-License-Identifier: MIT
// ternary_chunk by cooperative matrices of int8 whose elements invocations fill: weights are loaded into registers, and
// only activations go through shared memory and barriers. As the rows and columns of a product may have any order, an
// invocation takes whole tiles of weights, and x is staged in that order. A subgroup has 32 rows and all of the tile's
// tokens, of a part of the columns: each part has a subgroup with the same rows. Sums are integers, so every form gives
// the bits of ternary_matmul.
// variant: ternary_chunk_fragments -DWIDE_LOADS=0 -DEMULATED=0
// variant: tests/ternary_fragments_emulated -DWIDE_LOADS=0 -DEMULATED=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if !EMULATED
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 128;
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
const uint subgroup_width = 32u;
#include "subgroup.glsl"

layout(push_constant, scalar) uniform Push { Words input_, factors, weight, scales, output_, state, keys, values; };

#include "epilogue.glsl"

#define LANE (gl_LocalInvocationIndex % 32u)
#define SUBGROUP (gl_LocalInvocationIndex / 32u)

// A step has 128 columns, or 64, of the tile's tokens; each row is 16 bytes longer, so that neighbours begin in
// different banks. At the end the buffer holds 16 tokens of a subgroup's rows.
const uint step_quads = columns % 128u == 0u ? 8u : 4u, stride = step_quads + 1u, step_blocks = step_quads / 4u;
const uint row_subgroups = tile_rows / 32u, parts = workgroup_size / 32u / row_subgroups,
           part_size = workgroup_size / parts, part_steps = columns / (16u * step_quads * parts),
           token_fragments = tile_tokens / 16u;
const uint strip_pitch = 9u, strip_quads = 16u * strip_pitch, tile_quads = parts * tile_tokens * stride;
const uint all_strips = workgroup_size / 32u * strip_quads;
const uint staged_quads = tile_quads > all_strips ? tile_quads : all_strips;
shared uvec4 staged[staged_quads];
shared uvec2 staged_factors[tile_tokens];
const uint tiles = columns / 16u, groups = rows / 4u;
#define PART (SUBGROUP / row_subgroups)

#if EMULATED
#undef LATER_UNROLLED
#define LATER_UNROLLED [[dependency_infinite]]  // kept rolled (tools/embed_shaders): llvmpipe would compile for minutes
#define INT8_FRAGMENTS
#include "emulated_fragments.glsl"
#else
#define sums_of coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define weights_of coopmat<int8_t, gl_ScopeSubgroup, 32, 16, gl_MatrixUseB>
#define tokens_of coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>
#define no_sums sums_of(0)
#define number_of(byte_) int8_t(uint8_t(byte_))
#define strip_barrier() \
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease)
#endif
void strips_barrier() {
  if (parts > 1u) barrier();
  else strip_barrier();
}

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly restrict buffer ReadQuads { uvec4 at[]; };

sums_of sums[8][2];
uvec4 codes[2];  // of 64 columns a tile of 4 rows and 16 columns
uvec4 next_x[8];
uint64_t codes_at, x_at;
uint first_token;
const uint x_apart = part_size / step_quads, x_items = (tile_tokens + x_apart - 1u) / x_apart;
const bool even_items = x_items * x_apart == tile_tokens, whole_tiles = even_items && max_tokens % tile_tokens == 0u;
#define OWN (gl_LocalInvocationIndex % part_size)

void load_codes(uint step_, uint i) { codes[i] = ReadQuads(codes_at + step_ * (16u * step_quads)).at[4u * i]; }

// Tokens beyond the pass's count are read too, if the buffer has room for them; their results are unused.
void load_x(uint step_) {
  uint64_t from = x_at + step_ * (16u * step_quads);
  LATER_UNROLLED for (uint i = 0u; i < x_items; ++i) {
    uint own = first_token + OWN / step_quads,
         apart = whole_tiles ? i * x_apart : min(own + i * x_apart, max_tokens - 1u) - min(own, max_tokens - 1u);
    next_x[i] = ReadQuads(from).at[apart * tiles];
  }
}
// In each 64 columns, word 4 q + f, of four columns, becomes word 4 f + q: quarter q's columns of a row's tile are then
// distributed like a matrix's elements.
void stage_x() {
  uint quad = OWN % step_quads, at = (PART * tile_tokens + OWN / step_quads) * stride + (quad & ~3u);
  LATER_UNROLLED for (uint i = 0u; i < x_items; ++i) if (even_items || OWN / step_quads + i * x_apart < tile_tokens)
      LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) staged[at + i * x_apart * stride + f][quad & 3u] = next_x[i][f];
}

// The indices of an invocation's elements of these matrices are those found on the device (the proof at load compares
// the sums with the reference). Its four rows of a tile are two of each of the subgroup's two matrices.
void multiply(uint step_) {
  uint next = min(step_ + 1u, part_steps - 1u);
  LATER_UNROLLED for (uint s = 0u; s < 2u * step_blocks; ++s) {
    uint at = PART * tile_tokens * stride + 2u * s;
    if (s == step_blocks) load_x(next);
#if !EMULATED
    tokens_of x[8];
    LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t)
        coopMatLoad(x[t], staged, at + 16u * t * stride, stride, gl_CooperativeMatrixLayoutRowMajor);
#endif
    LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) {
      weights_of w;
      LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) {
        uint four = codes[s / 2u][2u * r + j / 2u] >> (4u * (s & 1u) + 2u * (j & 1u)) & 0x03030303u;
        LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) w[4u * j + i] = number_of(four >> (8u * i));
      }
      if (r == 1u && (s & 1u) == 1u) load_codes(next, s / 2u);
      LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t)
#if EMULATED
          sums[t][r] = multiply_add(at + 16u * t * stride, w, sums[t][r]);
#else
          sums[t][r] = coopMatMulAdd(x[t], w, sums[t][r]);
#endif
    }
  }
}

// Stores 16 tokens of a subgroup at a time; the subgroups that have the parts of their sums share the items. An
// invocation has one group of four rows of every fourth token: their epilogue's loads are issued together. A group's
// sums are eight words apart. Codes are 0, 1, 2 for -1, 0, +1.
void store_sums(uint first_row, uint wanted_row, uint count) {
  const uint apart = parts * 4u, items = 16u / apart;
  uint strip = SUBGROUP * strip_quads, sum_strip = SUBGROUP % row_subgroups * strip_quads, own_group = LANE & 7u,
       group = first_row / 4u + own_group, own = PART * 4u + LANE / 8u;
  vec4 scale = row_scales(group);
  for (uint fragment = 0u; fragment < token_fragments; ++fragment) {
    LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t) if (t == fragment) {
      LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) {
#if EMULATED
        store_fragment(strip + 4u * r, strip_pitch, sums[t][r]);
#else
        coopMatStore(sums[t][r], staged, strip + 4u * r, strip_pitch, gl_CooperativeMatrixLayoutRowMajor);
#endif
      }
    }
    strips_barrier();
    vec4 added[items];
    LATER_UNROLLED for (uint i = 0u; i < items; ++i) if (epilogue == epilogue_add) added[i] =
        float_quad(added_to, min(first_token + 16u * fragment + own + i * apart, count - 1u) * groups + group);
    LATER_UNROLLED for (uint i = 0u; i < items; ++i) {
      uint in_tile = 16u * fragment + own + i * apart, token = first_token + in_tile,
           at = sum_strip + (own + i * apart) * strip_pitch + own_group / 4u;
      ivec4 sum = ivec4(0);
      LATER_UNROLLED for (uint p = 0u; p < parts; ++p) LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) sum[r] +=
          int(staged[at + p * row_subgroups * strip_quads + 2u * r][own_group & 3u]);
      uvec2 factor = staged_factors[in_tile];
      precise vec4 y = vec4(sum - int(factor.y)) * (uintBitsToFloat(factor.x) * scale);
      if (token < count && group >= wanted_row / 4u) {
        if (epilogue == epilogue_add) {
          precise vec4 result = added[i] + y;
          store_floats(output_, token * groups + group, result);
        } else {
          finish(token, group, y);
        }
      }
    }
    strips_barrier();
  }
}

void main() {
  uint count = min(state.at[state_count], max_tokens), wanted_row = gl_WorkGroupID.x * tile_rows,
       first_row = min(wanted_row, rows - tile_rows) + SUBGROUP % row_subgroups * 32u;
  first_token = gl_WorkGroupID.y * tile_tokens;
  if (first_token >= count) return;
  read_epilogue();
  LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t) LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) sums[t][r] =
      no_sums;
  uint first_quad = PART * part_steps * step_quads;
  codes_at = pack64(uvec2(weight)) + ((first_row / 4u + LANE / 4u) * tiles + first_quad + (LANE & 3u)) * 16u;
  x_at = pack64(uvec2(input_)) +
         (min(first_token + OWN / step_quads, max_tokens - 1u) * tiles + first_quad + OWN % step_quads) * 16u;
  load_x(0u);
  LATER_UNROLLED for (uint i = 0u; i < step_blocks; ++i) load_codes(0u, i);
  for (uint i = gl_LocalInvocationIndex; i < tile_tokens; i += workgroup_size)
    staged_factors[i] = word_pair(factors, min(first_token + i, count - 1u));
  for (uint step_ = 0u; step_ < part_steps; ++step_) {
    stage_x();
    barrier();
    multiply(step_);
    barrier();
  }
  store_sums(first_row, wanted_row, count);
}
