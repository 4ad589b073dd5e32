// SPDX-License-Identifier: MIT
// matmul_chunk with matrices of weights that invocations fill from memory: only activations go through shared memory
// and barriers. As the columns of a product may have any order, an invocation takes adjacent columns of a row, and
// `quantize_f16` writes x in that order (`tiled` of fragments). A subgroup has 32 rows and all of the tile's tokens, of
// a part of the columns: each part has a subgroup with the same rows; the number of parts depends only on the matrix.
// Every element of the output is the sum of its parts, each in rising order of steps, so that no bit depends on the
// tile or on the number of tokens.
// variant: matmul_chunk_fragments -DWIDE_LOADS=0 -DEMULATED=0
// variant: tests/matmul_fragments_emulated -DWIDE_LOADS=0 -DEMULATED=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if !EMULATED
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#endif
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 128;
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
const uint subgroup_width = 32u;
#include "codec.glsl"
#include "subgroup.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, factors, weight, output_, state, keys, values, rope, tiles;
};

#define UNSCALED
#define rope_of(position, pair) rope_from_turns(position, own_turns[uint(pair) & 1u])
uvec2 own_turns[2];
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"
#include "half_codes.glsl"
#include "chunk_rows.glsl"

#define LANE (gl_LocalInvocationIndex % 32u)
#define SUBGROUP (gl_LocalInvocationIndex / 32u)

// 64 columns of the tile's tokens, each row 16 bytes longer, so that neighbours begin in different banks; at the end 16
// tokens of a subgroup's rows.
const uint step_quads = 8u, stride = step_quads + 1u, steps = columns / 64u;
const uint row_fragments = 2u, own_rows = 2u * row_fragments;  // of 16 rows; rows of an invocation, eight apart
const uint row_subgroups = tile_rows / 32u, parts = workgroup_size / 32u / row_subgroups,
           part_size = workgroup_size / parts, part_steps = steps / parts, token_fragments = tile_tokens / 16u;
const uint strip_pitch = 4u * row_fragments + 1u, strip_quads = 16u * strip_pitch,
           tile_quads = parts * tile_tokens * stride;
const uint all_strips = workgroup_size / 32u * strip_quads;
// Activations of two steps, so that a step has one barrier; of one step if decoding takes many instructions and
// workgroups are small: then three of them share a multiprocessor.
const bool simple_codes = dense || codec == codec_q4_0 || codec == codec_q4_k;
const uint buffers = simple_codes || workgroup_size > 128u || tile_tokens > 64u ? 2u : 1u;
const uint staged_quads = buffers * tile_quads > all_strips ? buffers* tile_quads : all_strips;
shared uvec4 staged[staged_quads];
shared float staged_factors[tile_tokens];

// An invocation loads 16 bytes of a row at a time: of 16-bit weights 32 columns of four invocations, two pieces per
// step; else 128 columns, one piece for two steps, or with q8_0 one for each step. Four invocations then load 64
// adjacent bytes of a row in the fewest possible loads, on which the time depends. The next piece is loaded as soon as
// its registers are free.
const bool two_steps = !dense, signed_bytes = codec == codec_q8_0;
const uint groups = rows / 4u, token_quads = columns / 8u;

#if EMULATED
#undef LATER_UNROLLED
#define LATER_UNROLLED [[dependency_infinite]]  // kept rolled (tools/embed_shaders): llvmpipe would compile for minutes
#include "emulated_fragments.glsl"
#else
#define sums_of coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define weights_of coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define tokens_of coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define no_sums sums_of(0.0)
#define strip_barrier() \
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease)
#endif
void strips_barrier() {
  if (parts > 1u) barrier();
  else strip_barrier();
}

sums_of sums[8][row_fragments];

// Memory that is not written meanwhile. Blocks are faster with it on an H100 (356 to 333 us), 16-bit weights slower.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly restrict buffer ReadQuads { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly restrict buffer ReadPairs { uvec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly restrict buffer ReadWords { uint at[]; };

struct row_codes {
  uvec4 a, b;   // f32 has both
  uvec2 upper;  // planes of two bits and of one
  uint top;
};
// Codecs with code of their own for the conversion to f16; the others use the general code.
const bool own_form = codec <= codec_q6_k;
row_codes codes[2][own_rows];
uvec4 scales[own_rows];
// Codecs with a table: its values of the blocks of two steps. They are looked up together at the first step, so that
// the registers of the codes are free for the next blocks.
const bool looks_up = value_table != 0u;
block_words looked_up[own_rows];
uvec4 next_x[8];

// Addresses of an invocation's rows: its first group, codes of its first row in it, factors. 64 bits, so that an
// addition is two instructions and constant distances are part of the loads.
uint64_t group_at, codes_at, upper_at, top_at, factors_at;
uint first_block;  // of 32 columns, of the invocation's part
#define ROW (LANE >> 2)
#define QUARTER (LANE & 3u)
#define PART (SUBGROUP / row_subgroups)
const uint group_step = 2u * group_quads;  // eight rows

// A number unknown to the compiler, so that mask and exponent of a code are one instruction.
uint unknown(uint number) { return number + gl_WorkGroupID.z; }
uint magic, upper_magic;

void find_weights(uint first_row) {
  uint r = ROW & 3u, block = first_block + QUARTER;
  group_at = pack64(addresses_in_group(weight, chunk.first_group + first_row / 4u + (ROW >> 2), 0u).group);
  codes_at = group_at + (dense ? (r * octets + 8u * part_steps * PART + QUARTER) * octet_quads * 16u
                               : (r * (codec == codec_q8_0 ? 2u : 1u) * blocks + block) * 16u);
  if ((code_bits & 2u) != 0u) upper_at = group_at + ((2u * (code_bits & 4u) + r) * blocks * 8u + 8u * block);
  if ((code_bits & 1u) != 0u) top_at = group_at + ((4u * (code_bits & 6u) + r) * blocks * 4u + 4u * block);
  if (codec == codec_q8_0 || codec == codec_q4_0)
    factors_at = group_at + ((codec == codec_q8_0 ? 128u : 64u) * blocks + 8u * block + 4u * (r / 2u));
  if (codec == codec_q4_1) factors_at = group_at + (64u * blocks + 16u * block + 4u * r);
  magic = unknown(codec == codec_q8_0 ? 0x64806480u : 0x64006400u);
  upper_magic = unknown(0x54005400u);
}

// Piece h of a row: of a step, or of the block of four for two steps.
void load_codes_of(uint to, uint step_, uint h, uint i) {
  uint64_t from = codes_at + step_ * (dense ? 128u * octet_quads : 64u);
  if (codec == element_f32) {
    codes[to][i].a = word_quad(Words(from), i * group_step + 8u * h);
    codes[to][i].b = word_quad(Words(from), i * group_step + 8u * h + 1u);
  } else if (dense) {
    codes[to][i].a = word_quad(Words(from), i * group_step + 4u * h);
  } else {
    if (code_bits >= 4u) codes[to][i].a = ReadQuads(from).at[i * group_step + h * blocks];
    if ((code_bits & 2u) != 0u) codes[to][i].upper = ReadPairs(upper_at + step_ * 32u).at[2u * i * group_step];
    if ((code_bits & 1u) != 0u) codes[to][i].top = ReadWords(top_at + step_ * 16u).at[4u * i * group_step];
  }
}
void load_scales(uint step_, uint i) {
  if (codec == codec_q8_0 || codec == codec_q4_0)
    scales[i].x = ReadWords(factors_at + step_ * 32u).at[4u * i * group_step];
  else if (codec == codec_q4_1) scales[i].x = ReadWords(factors_at + step_ * 64u).at[4u * i * group_step];
  else if (!dense)
    scales[i] = load_factor(Words(group_at + 16u * i * group_step), ROW & 3u, first_block + 4u * step_ + QUARTER);
}
block_factors factors_of_row(uint i, uint step_) {
  if (codec != codec_q8_0 && codec != codec_q4_0)
    return factors_of(scales[i], ROW & 3u, first_block + 4u * step_ + QUARTER);
  block_factors by;
  by.d = by.upper_d = by.m = f16vec2(as_pair(scales[i].x >> (16u * (ROW & 1u))).x);
  return by;
}

raw_codes raw_of(row_codes from) {
  uint top = (code_bits & 1u) != 0u ? from.top : 0u;  // IQ1_S looks two planes up, and the third must be zero
  return raw_codes(from.a, uvec4(from.upper, top, 0u));
}
// Four columns of fragment s of a step as f16, in the order 0, 2, 1, 3: a code below 2^10 in the mantissa of 1024 is
// 1024 plus the code; 16 times a code in that of 64 is 64 plus the code. h: of blocks, which half of each.
uvec2 four_f16(row_codes from, block_words words, block_factors by, uint s, uint h) {
  if (codec == element_f32) {
    vec4 w = uintBitsToFloat((s & 1u) == 0u ? from.a : from.b);
    return uvec2(rounded(w.x, w.z), rounded(w.y, w.w));
  }
  if (dense) return dense_f16((s & 1u) == 0u ? from.a.xy : from.a.zw);
  f16vec2 d = h == 0u ? by.d : by.upper_d;
  if (!own_form)
    return four_columns(as_unsigned(plain_codes_at(words, raw_of(from), 4u * h + s)), code_offset, d,
                        h == 0u ? by.m : by.upper_m);
  uvec2 y;
  LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
    uint bits = i == 0u ? from.a[s] : from.a[s] >> 8;
    float less = signed_bytes ? 1152.0 : 1024.0;
    if (signed_bytes) {
      bits = bits & 0x00ff00ffu ^ magic;
    } else if (codec == codec_q6_k) {
      uint upper = h == 0u ? from.upper.x : from.upper.y;
      upper = s < 2u ? upper << (4u - 2u * s) : upper >> (2u * s - 4u);
      bits = (h == 0u ? bits : bits >> 4) & 0x000f000fu | magic;
      bits = (i == 0u ? upper : upper >> 8) & 0x00300030u | bits;
      less = 1056.0;
    } else {
      bits = h == 0u ? bits & 0x000f000fu | magic : bits & 0x00f000f0u | upper_magic;
      less = (h == 0u ? 1024.0 : 64.0) + (codec == codec_q4_0 ? 8.0 : 0.0);
    }
    f16vec2 code = as_pair(bits) - f16vec2(float16_t(less));
    y[i] = as_word(codec == codec_q4_1 || codec == codec_q4_k ? fma(code, d, by.m) : code * d);
  }
  return y;
}

uint first_token;
uint64_t x_at;
const uint x_apart = part_size / step_quads, x_items = (tile_tokens + x_apart - 1u) / x_apart;
const bool even_items = x_items * x_apart == tile_tokens, whole_tiles = even_items && max_tokens % tile_tokens == 0u;
#define OWN (gl_LocalInvocationIndex % part_size)

// Tokens beyond the pass's count are read too, if the buffer has room for them; their results are unused.
void load_x(uint step_) {
  uint64_t from = x_at + step_ * (16u * step_quads);
  LATER_UNROLLED for (uint i = 0u; i < x_items; ++i) {
    uint own = first_token + OWN / step_quads,
         apart = whole_tiles ? i * x_apart : min(own + i * x_apart, max_tokens - 1u) - min(own, max_tokens - 1u);
    next_x[i] = dense ? word_quad(Words(from), apart * token_quads) : ReadQuads(from).at[apart * token_quads];
  }
}
void stage_x(uint to) {
  uint at = to + (PART * tile_tokens + OWN / step_quads) * stride + OWN % step_quads;
  LATER_UNROLLED for (uint i = 0u; i < x_items; ++i) if (even_items || OWN / step_quads + i * x_apart < tile_tokens)
      staged[at + i * x_apart * stride] = next_x[i];
}

block_factors by[own_rows];

// Multiplies 64 columns, of blocks the lower or the upper halves of four. The indices of an invocation's elements of
// these matrices are those found on the device (the proof at load compares the sums with the reference).
void multiply(uint from, uint step_, uint parity) {
  uint next = min(step_ + 1u, part_steps - 1u), next_blocks = min(step_ / 2u + 1u, part_steps / 2u - 1u);
  if (two_steps && parity == 0u) {
    LATER_UNROLLED for (uint i = 0u; i < own_rows; ++i) {
      by[i] = factors_of_row(i, step_ / 2u);
      load_scales(next_blocks, i);
      if (looks_up) {
        looked_up[i] = words_ahead(raw_of(codes[0][i]));
        load_codes_of(0u, next_blocks, 0u, i);
      }
    }
  }
  LATER_UNROLLED for (uint s = 0u; s < 4u; ++s) {
    uint piece = dense ? s / 2u : signed_bytes ? parity : 0u, at = from + PART * tile_tokens * stride + 2u * s;
    bool last = dense ? (s & 1u) == 1u : s == 3u && (signed_bytes || parity == 1u) && !looks_up;
    if (s == (dense ? 0u : 2u)) load_x(next);
#if !EMULATED
    tokens_of x[8];
    LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t)
        coopMatLoad(x[t], staged, at + 16u * t * stride, stride, gl_CooperativeMatrixLayoutRowMajor);
#endif
    LATER_UNROLLED for (uint r = 0u; r < row_fragments; ++r) {
      weights_of w;
      LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) {
        uvec2 four = four_f16(codes[piece][2u * r + k], looked_up[2u * r + k], by[2u * r + k], s, parity);
        f16vec2 low = as_pair(four.x), high = as_pair(four.y);
        w[4u * k] = low.x;
        w[4u * k + 1u] = low.y;
        w[4u * k + 2u] = high.x;
        w[4u * k + 3u] = high.y;
        if (last) load_codes_of(piece, dense ? next : next_blocks, piece, 2u * r + k);
      }
      LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t)
#if EMULATED
          sums[t][r] = multiply_add(at + 16u * t * stride, w, sums[t][r]);
#else
          sums[t][r] = coopMatMulAdd(x[t], w, sums[t][r]);
#endif
    }
  }
}
void one_step(uint step_, uint parity) {
  if (buffers == 1u) {
    stage_x(0u);
    barrier();
    multiply(0u, step_, parity);
    barrier();
  } else {
    multiply(parity * tile_quads, step_, parity);
    stage_x((1u - parity) * tile_quads);
    barrier();
  }
}

// Stores 16 tokens of a subgroup at a time; the subgroups that have the parts of their sums share the items. An
// invocation has one group of four rows of every fourth token: their epilogue's loads are issued together.
void store_sums(uint first_row, uint wanted_row, uint count) {
  const uint quads = 4u * row_fragments, apart = parts * 32u / quads, items = 16u / apart;
  uint strip = SUBGROUP * strip_quads, sum_strip = SUBGROUP % row_subgroups * strip_quads,
       group = first_row / 4u + LANE % quads;
  if (epilogue == epilogue_rope_cache) {
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) own_turns[i] = word_pair(rope, 4u * group % head_dim / 2u + i);
  }
  for (uint fragment = 0u; fragment < token_fragments; ++fragment) {
    LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t) if (t == fragment) {
      LATER_UNROLLED for (uint r = 0u; r < row_fragments; ++r) {
#if EMULATED
        store_fragment(strip + 4u * r, strip_pitch, sums[t][r]);
#else
        coopMatStore(sums[t][r], staged, strip + 4u * r, strip_pitch, gl_CooperativeMatrixLayoutRowMajor);
#endif
      }
    }
    strips_barrier();
    uint own = PART * (32u / quads) + LANE / quads;
    vec4 added[items];
    LATER_UNROLLED for (uint i = 0u; i < items; ++i) if (epilogue == epilogue_add) added[i] =
        float_quad(added_to, min(first_token + 16u * fragment + own + i * apart, count - 1u) * groups + group);
    LATER_UNROLLED for (uint i = 0u; i < items; ++i) {
      uint in_tile = 16u * fragment + own + i * apart, token = first_token + in_tile,
           at = sum_strip + (own + i * apart) * strip_pitch + LANE % quads;
      precise vec4 sum_of_parts = uintBitsToFloat(staged[at]);
      LATER_UNROLLED for (uint p = 1u; p < parts; ++p) sum_of_parts =
          sum_of_parts + uintBitsToFloat(staged[at + p * row_subgroups * strip_quads]);
      precise vec4 y = sum_of_parts * staged_factors[in_tile];
      if (token < count && group >= wanted_row / 4u) {
        if (epilogue == epilogue_add) {
          precise vec4 sum = added[i] + y;
          store_floats(output_, token * groups + group, sum);
        } else {
          finish(output_row(token), group, y);
        }
      }
    }
    strips_barrier();
  }
}

void main() {
  find_rows();
  uint count = chunk.end, wanted_row = gl_WorkGroupID.y * tile_rows,
       first_row = min(wanted_row, rows - tile_rows) + SUBGROUP % row_subgroups * 32u;
  first_token = chunk.first;
  if (first_token >= count) return;
  first_block = PART * (2u * part_steps);
  read_epilogue();
  LATER_UNROLLED for (uint t = 0u; t < token_fragments; ++t) LATER_UNROLLED for (uint r = 0u; r < row_fragments; ++r)
      sums[t][r] = no_sums;
  find_weights(first_row);
  x_at = pack64(uvec2(input_)) + (min(first_token + OWN / step_quads, max_tokens - 1u) * token_quads +
                                  PART * part_steps * step_quads + OWN % step_quads) *
                                     16u;
  load_x(0u);
  LATER_UNROLLED for (uint i = 0u; i < own_rows; ++i) {
    load_codes_of(0u, 0u, 0u, i);
    if (dense || signed_bytes) load_codes_of(1u, 0u, 1u, i);
    load_scales(0u, i);
  }
  for (uint i = gl_LocalInvocationIndex; i < tile_tokens; i += workgroup_size)
    staged_factors[i] = uintBitsToFloat(factors.at[min(first_token + i, count - 1u)]);
  if (buffers == 2u) {
    stage_x(0u);
    barrier();
  }
  for (uint step_ = 0u; step_ < part_steps; step_ += 2u) {
    one_step(step_, 0u);
    if (part_steps % 2u == 0u || step_ + 1u < part_steps) one_step(step_ + 1u, 1u);
  }
  barrier();
  store_sums(first_row, wanted_row, count);
}
