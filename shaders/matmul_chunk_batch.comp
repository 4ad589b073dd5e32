// SPDX-License-Identifier: MIT
// matmul_chunk for a small batch of tokens, by cooperative matrices that invocations fill from memory: weights and
// tokens do not go through shared memory, and no subgroup waits before the end. A step is four blocks of a row (or
// eight octets of 16-bit weights), of which an invocation has one for each eight rows: as the columns of a product may
// have any order, it takes adjacent ones. x is in tiles of eight tokens (`quantize_f16`, tiled). A subgroup has 32 rows
// and every column_subgroups-th step: the order of a sum depends only on the shape of the weights, not on the number of
// tokens.
// variant: matmul_chunk_batch -DWIDE_LOADS=0 -DEMULATED=0
// variant: tests/matmul_chunk_emulated -DWIDE_LOADS=0 -DEMULATED=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if !EMULATED
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#endif
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 256;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint codec = 0;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const uint tile_rows = 32;
layout(constant_id = 6) const uint tile_tokens = 8;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint q_size = 256;
layout(constant_id = 9) const uint kv_size = 64;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const uint ring = 0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint max_tokens = 8;
layout(constant_id = 14) const uint slot_words = 0;
layout(constant_id = 15) const uint page_size = 0;
layout(constant_id = 16) const uint experts_used = 0;  // none here
layout(constant_id = 17) const uint list_tokens = 0;
layout(local_size_x_id = 0) in;
const uint subgroup_width = 32u;
#include "subgroup.glsl"
#include "codec.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, factors, weight, output_, state, keys, values, rope, tiles;
};

#define UNSCALED
#define rope_of(position, pair) own.turns[uint(pair) & 1u]
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
// The epilogue's loads for a token and a group of rows. Tiles with many products issue them early.
struct wanted {
  vec4 added;
  vec2 turns[2];
  float factor;
  uint position, slot;
};
wanted own;
#define position_of(token) own.position
#define cache_slot(token, position) own.slot
#include "epilogue.glsl"
#include "half_codes.glsl"

const uint fragments = 2u,
           own_rows = 2u * fragments;  // of 16 rows; rows of which an invocation has weights, eight apart
const uint row_subgroups = tile_rows / 32u, column_subgroups = workgroup_size / 32u / row_subgroups;
const uint token_fragments = tile_tokens / 8u, groups = rows / 4u, tile_groups = tile_rows / 4u;
const uint all_octets = columns / 8u,
           step_octets = codec == element_f32 ? 4u
                         : dense              ? 8u
                                              : 16u,
           steps = (all_octets + step_octets - 1u) / step_octets;
const bool whole_steps = all_octets % step_octets == 0u;
const uint step_octets_of_one = step_octets / 4u;
const bool early = tile_tokens == 32u || tile_rows == 64u;  // loads of x and of the epilogue

// Sums by share of the columns, token of eight and group of rows.
shared vec4 staged[column_subgroups * 8u * tile_groups];

#define LANE (gl_LocalInvocationIndex % 32u)
#define SUBGROUP (gl_LocalInvocationIndex / 32u)
#define FIRST_ROW (SUBGROUP % row_subgroups * 32u)
#define SHARE (SUBGROUP / row_subgroups)
#if EMULATED
#undef LATER_UNROLLED
#define LATER_UNROLLED [[dependency_infinite]]  // kept rolled (tools/embed_shaders): llvmpipe would compile for minutes
#include "emulated_matrix.glsl"
#else
#define sums_of coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define weights_of coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define tokens_of coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define no_sums sums_of(0.0)
#define multiply_add coopMatMulAdd
#endif

// An invocation's octets of a row in a step, or the codes of its block, and their factors.
struct row_part {
  raw_codes raw;
  uvec4 factor;
};

uvec2 group_at[own_rows];

row_part load_part(uint i, uint step_) {
  uint r = LANE >> 2 & 3u, quarter = LANE & 3u;
  row_part part = row_part(raw_codes(uvec4(0u), uvec4(0u)), uvec4(0u));
  if (dense) {
    uint quad = octet_quads * (r * octets + step_octets * step_ + quarter);
    part.raw.a = word_quad(Words(group_at[i]), quad);
    part.raw.b = word_quad(Words(group_at[i]), quad + (codec == element_f32 ? 1u : 4u));
  } else {
    uint block = whole_steps ? 4u * step_ + quarter : min(4u * step_ + quarter, blocks - 1u);
    part.raw = load_codes(lane_addresses(group_at[i], advanced(group_at[i], 16u * block),
                                         advanced(group_at[i], 8u * block), advanced(group_at[i], 4u * block)),
                          r);
    part.factor = load_factor(Words(group_at[i]), r, block);
  }
  return part;
}

// Four neighbouring columns as f16, in the order 0, 2, 1, 3: pairs.
uvec2 four_f16(row_part part, block_factors by, uint j) {
  if (!dense) {
    return four_columns(unsigned_word(part.raw, j), code_offset, j < 4u ? by.d : by.upper_d,
                        j < 4u ? by.m : by.upper_m);
  }
  uvec4 words = j < 2u ? part.raw.a : part.raw.b;
  if (codec == element_f32) {
    vec4 w = uintBitsToFloat(j == 0u ? part.raw.a : part.raw.b);
    return uvec2(rounded(w.x, w.z), rounded(w.y, w.w));
  }
  return dense_f16((j & 1u) == 0u ? words.xy : words.zw);
}

sums_of sums[fragments][4];

uvec4[4] load_tokens(uint step_, Words x_at, uint p) {
  uint octet = step_octets * step_ + (dense ? 4u * p + (LANE & 3u) : 4u * (LANE & 3u) + p);
  uvec4 x[4];
  LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) {
    x[t] = word_quad(x_at, (t * all_octets + (whole_steps ? octet : min(octet, all_octets - 1u))) * 8u + (LANE >> 2));
    if (!whole_steps && octet >= all_octets) x[t] = uvec4(0u);
  }
  return x;
}

// The indices of an invocation's elements of these matrices hold on the devices that the module is for; on others the
// proof at load fails.
void multiply(row_part parts[own_rows], uint step_, uint p, uvec4 x[4]) {
  block_factors by[own_rows];
  LATER_UNROLLED for (uint i = 0u; i < own_rows; ++i) by[i] =
      factors_of(parts[i].factor, LANE >> 2 & 3u, 4u * step_ + (LANE & 3u));
  LATER_UNROLLED for (uint e = 0u; e < 2u; ++e) {
    tokens_of tokens[4];
    LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) {
      f16vec2 low = as_pair(e == 0u ? x[t].x : x[t].z), high = as_pair(e == 0u ? x[t].y : x[t].w);
      tokens[t][0] = low.x;
      tokens[t][1] = low.y;
      tokens[t][2] = high.x;
      tokens[t][3] = high.y;
    }
    LATER_UNROLLED for (uint r = 0u; r < fragments; ++r) {
      weights_of w;
      LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) {
        uvec2 four = four_f16(parts[2u * r + k], by[2u * r + k], 2u * p + e);
        f16vec2 low = as_pair(four.x), high = as_pair(four.y);
        w[4u * k] = low.x;
        w[4u * k + 1u] = low.y;
        w[4u * k + 2u] = high.x;
        w[4u * k + 3u] = high.y;
      }
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) sums[r][t] =
          multiply_add(w, tokens[t], sums[r][t]);
    }
  }
}

// Unrolled, so that everything stays in registers.
#define each_part(of) of(0u, x0) of(1u, x1) of(2u, x2) of(3u, x3)
#define load_one(p, x) \
  if (p < step_octets_of_one) x = load_tokens(its_step, x_at, p);
#define multiply_one(p, x) \
  if (p < step_octets_of_one) multiply(parts, its_step, p, x);
#define load_and_multiply(p, x) load_one(p, x) multiply_one(p, x)
#define load_parts(to, step_) LATER_UNROLLED for (uint i = 0u; i < own_rows; ++i) to[i] = load_part(i, step_);

// With 16-bit weights the next step's are in flight while this step's are multiplied; x of this step is loaded before
// them: loads return in order.
#define multiply_ahead(now, next, step_)                                                                       \
  {                                                                                                            \
    row_part parts[own_rows] = now;                                                                            \
    uint its_step = step_;                                                                                     \
    uvec4 x0[4], x1[4], x2[4], x3[4];                                                                          \
    each_part(load_one) load_parts(next, min(its_step + column_subgroups, steps - 1u)) each_part(multiply_one) \
  }

void add_steps(Words x_at) {
#if !EMULATED  // llvmpipe would compile twice as long
  if (early && dense && codec != element_f32) {
    row_part even[own_rows], odd[own_rows];
    load_parts(even, min(SHARE, steps - 1u)) for (uint step_ = SHARE; step_ < steps; step_ += 2u * column_subgroups) {
      multiply_ahead(even, odd, step_) if (step_ + column_subgroups >= steps) break;
      multiply_ahead(odd, even, step_ + column_subgroups)
    }
    return;
  }
#endif
  for (uint its_step = SHARE; its_step < steps; its_step += column_subgroups) {
    row_part parts[own_rows];
    load_parts(parts, its_step) uvec4 x0[4], x1[4], x2[4], x3[4];
    if (early) {
      each_part(load_one) each_part(multiply_one)
    } else {
      each_part(load_and_multiply)
    }
  }
}

wanted wanted_for(uint token, uint group) {
  wanted out_;
  out_.factor = uintBitsToFloat(factors.at[token]);
  if (epilogue == epilogue_add) out_.added = float_quad(added_to, token * groups + group);
  if (epilogue == epilogue_rope_cache) {
    uint pair = 4u * group % head_dim / 2u;
    out_.position = batched ? row_position(token) : first_position + token;
    out_.slot = batched ? row_offset(token, out_.position) : slot_of(out_.position);
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) out_.turns[i] =
        rope_from_turns(out_.position, word_pair(rope, pair + i));
  }
  return out_;
}
wanted asked[4];

void main() {
  uint first_token = gl_WorkGroupID.x * tile_tokens, wanted_row = gl_WorkGroupID.y * tile_rows,
       count = min(state.at[state_count], max_tokens);
  if (first_token >= count) return;
  uint first_row = rows < tile_rows ? 0u : min(wanted_row, rows - tile_rows);
  read_epilogue();
  LATER_UNROLLED for (uint i = 0u; i < own_rows; ++i) group_at[i] =
      addresses_in_group(weight, min((first_row + FIRST_ROW + 8u * i + (LANE >> 2)) / 4u, groups - 1u), 0u).group;
  Words x_at = Words(advanced(uvec2(input_), first_token * columns * 2u));
  bool ends = gl_LocalInvocationIndex < 8u * tile_groups;
  uint own_token = first_token + gl_LocalInvocationIndex / tile_groups,
       own_group = first_row / 4u + gl_LocalInvocationIndex % tile_groups;
  LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (early && t < token_fragments && ends) asked[t] =
      wanted_for(min(own_token + 8u * t, count - 1u), min(own_group, groups - 1u));
  LATER_UNROLLED for (uint r = 0u; r < fragments; ++r) LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) sums[r][t] =
      no_sums;
  add_steps(x_at);

  LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) {
    barrier();
    LATER_UNROLLED for (uint r = 0u; r < fragments; ++r) LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
      uint row = FIRST_ROW + 16u * r + (LANE >> 2) + 8u * (i / 2u), token = 2u * (LANE & 3u) + (i & 1u);
      staged[(SHARE * 8u + token) * tile_groups + row / 4u][row & 3u] = sums[r][t][i];
    }
    barrier();
    uint token = own_token + 8u * t;
    if (ends && token < count && own_group >= wanted_row / 4u && own_group < groups) {
      precise vec4 y = staged[gl_LocalInvocationIndex];
      for (uint k = 1u; k < column_subgroups; ++k) y = y + staged[k * 8u * tile_groups + gl_LocalInvocationIndex];
      if (early) own = asked[t];
      else own = wanted_for(token, own_group);
      y = y * own.factor;
      if (epilogue == epilogue_add) {
        precise vec4 sum = own.added + y;
        store_floats(output_, token * groups + own_group, sum);
      } else {
        finish(token, own_group, y);
      }
    }
  }
}
