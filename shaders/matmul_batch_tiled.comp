// SPDX-License-Identifier: MIT
// matmul_batch by cooperative matrices of int8, with the same bits, with x in tiles of eight tokens. A workgroup has a
// tile of rows and tokens; its subgroups divide the 32 virtual lanes into runs of neighbours, so that a product of
// matrices is the whole integer sum of a block and no subgroup waits for another before the end. Weights go through
// shared memory that only one subgroup uses; x is loaded as it is multiplied (`fixed`, tiled). The lower bytes of x are
// stored as 127 minus the byte. Integers are the last bits of 1.5 * 2^23, 2^31 or 2^39, so that a subtraction makes
// them floats, times 1, 256 or 65536: everything is exact up to the point where matmul rounds.
// variant: matmul_batch_tiled -DWIDE_LOADS=0
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
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
layout(constant_id = 3) const uint codec = 3;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const uint tile_tokens = 8;
layout(constant_id = 6) const uint head_dim = 64;
layout(constant_id = 7) const uint q_size = 256;
layout(constant_id = 8) const uint kv_size = 64;
layout(constant_id = 9) const uint context = 256;
layout(constant_id = 10) const uint cache_element = 0;
layout(constant_id = 11) const uint subgroup_width = 32;
layout(constant_id = 12) const uint slot_words = 0;
layout(constant_id = 13) const uint page_size = 0;
layout(constant_id = 14) const uint tile_rows = 16;
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

const uint step_blocks = 32u * subgroup_width / workgroup_size;  // a subgroup's, of 32
const uint row_fragments = tile_rows / 16u, token_fragments = tile_tokens / 8u, groups = rows / 4u,
           tile_groups = tile_rows / 4u;
const uint rounds = (blocks + 31u) / 32u;
// If halves of a block have factors of their own, they are treated as blocks, with zeros for the other half.
const uint parts = codec == codec_q6_k ? 2u : 1u;
const bool has_second = codec == codec_q4_1 || codec == codec_q4_k || codec == codec_q6_k,
           adds = codec == codec_q4_1 || codec == codec_q4_k;

// Rows of weights of a subgroup, each 16 bytes longer, so that neighbours begin in different banks. At the end the
// buffer holds all sums of 8 tokens.
const uint weight_stride = 2u * parts * step_blocks + 1u, subgroup_quads = tile_rows * weight_stride,
           staged_quads = 32u / step_blocks * subgroup_quads;
const uint sum_stride = tile_groups + 1u, sum_quads = 32u * 8u * sum_stride;
shared uvec4 staged[staged_quads > sum_quads ? staged_quads : sum_quads];
// Factors of rows i and i + 8 of 16 are adjacent: by block and pair.
const uint factor_stride = tile_rows / 2u;
shared vec2 factors[32u * factor_stride], second_factors[has_second ? 32u * factor_stride : 1u];

// An invocation's registers for the next round: blocks of rows that are `later` apart.
const uint carried = tile_rows * step_blocks / 32u, later_groups = 8u / step_blocks, later = later_groups * group_quads;
raw_codes next_codes[carried];
uvec4 next_factors[carried];

// Address of the invocation's first row: its group, its codes, its codes' upper bits, and factors.
uint own_group, own_r;
uvec2 group_at, quads_at, pairs_at, factors_at;
uint first_block;  // of the invocation, in round 0

#define SUBGROUP (gl_LocalInvocationIndex / 32u)
#define LANE (gl_LocalInvocationIndex % 32u)

void find_inputs(uint first_row) {
  uint row = first_row + LANE / step_blocks;
  own_r = row & 3u;
  own_group = rows < tile_rows ? min(row / 4u, groups - 1u) : row / 4u;
  first_block = SUBGROUP * step_blocks + LANE % step_blocks;
  group_at = addresses_in_group(weight, own_group, 0u).group;
  quads_at = advanced(group_at, (codec == codec_q8_0 ? 32u : 16u) * blocks * own_r);
  pairs_at = advanced(group_at, 8u * blocks * (8u + own_r));
  uint after = codec == codec_q8_0 ? 128u * blocks : codec == codec_q6_k ? 96u * blocks : 64u * blocks;  // the codes
  factors_at = advanced(group_at, after + (codec == codec_q4_k   ? own_r / 2u * 32u
                                           : codec == codec_q4_1 ? 4u * own_r
                                                                 : own_r / 2u * 4u));
}

// Missing blocks and rows repeat the last one: a load without a condition does not wait for earlier loads.
uint block_at(uint round_) {
  return blocks % 32u == 0u ? first_block + 32u * round_ : min(first_block + 32u * round_, blocks - 1u);
}

void load_weights(uint round_) {
  uint block = block_at(round_);
  Words quads = Words(advanced(quads_at, 16u * block)), pairs = Words(advanced(pairs_at, 8u * block));
  Words heads = Words(advanced(factors_at, codec == codec_q4_k   ? 64u * (block / 8u)
                                           : codec == codec_q4_1 ? 16u * block
                                                                 : 8u * block)),
        scales = Words(advanced(factors_at, 8u * (block / 8u)));
  LATER_UNROLLED for (uint i = 0u; i < carried; ++i) {
    uint at = rows < tile_rows ? (min(own_group + i * later_groups, groups - 1u) - own_group) * group_quads : i * later;
    next_codes[i] = raw_codes(word_quad(quads, at), uvec4(0u));
    if (codec == codec_q8_0) next_codes[i].b = word_quad(quads, at + blocks);
    if (codec == codec_q6_k) next_codes[i].b.xy = word_pair(pairs, 2u * at);
    if (codec == codec_q4_k) next_factors[i] = six_bit_words(heads, 4u * at, block);
    else next_factors[i].x = heads.at[4u * at];
    if (codec == codec_q6_k) next_factors[i].z = scales.at[4u * at + 2u * blocks];
  }
}

vec3 own_row_factors(uvec4 own, uint block) {
  raw_factors raw;
  raw.row[0] = own;
  return row_factors(raw, codec == codec_q4_1 ? 0u : own_r & 1u, block);
}
uint signed_word(raw_codes raw, uint e) {
  uint word = code_word(raw, e);
  return codec == codec_q4_0 ? (word + 0x78787878u) ^ 0x80808080u : word;  // minus 8
}

void stage_weights(uint round_) {
  uint b = LANE % step_blocks, block = block_at(round_);
  LATER_UNROLLED for (uint i = 0u; i < carried; ++i) {
    uint row = LANE / step_blocks + 4u * later_groups * i,
         at = SUBGROUP * subgroup_quads + row * weight_stride + 2u * parts * b;
    raw_codes raw = next_codes[i];
    // Words with even numbers, then the others: lane k of a quarter has words 2k and 2k + 1 of x.
    uvec4 even = uvec4(signed_word(raw, 0u), signed_word(raw, 2u), signed_word(raw, 4u), signed_word(raw, 6u)),
          odd = uvec4(signed_word(raw, 1u), signed_word(raw, 3u), signed_word(raw, 5u), signed_word(raw, 7u));
    staged[at] = parts == 2u ? uvec4(even.xy, 0u, 0u) : even;
    staged[at + 1u] = parts == 2u ? uvec4(odd.xy, 0u, 0u) : odd;
    if (parts == 2u) {
      staged[at + 2u] = uvec4(0u, 0u, even.zw);
      staged[at + 3u] = uvec4(0u, 0u, odd.zw);
    }
    vec3 factor = own_row_factors(next_factors[i], block);
    uint pair = (SUBGROUP * step_blocks + b) * factor_stride + row / 16u * 8u + row % 8u;
    factors[pair][row / 8u % 2u] = factor.x;
    if (has_second) second_factors[pair][row / 8u % 2u] = adds ? factor.z : factor.y;
  }
}

const int lower_start = 0x4b400000, middle_start = 0x4f400000,
          upper_start = 0x53400000;                             // as floats 1.5 * 2^23, 2^31 and 2^39
const float of_both = 3233808384.0, of_upper = 824633720832.0;  // 1.5 * (2^23 + 2^31) and 1.5 * 2^39
#define sums_of coopmat<int, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define codes_of coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>
#define bytes_of coopmat<int8_t, gl_ScopeSubgroup, 32, 8, gl_MatrixUseB>
#define lowest_bytes bytes_of(int8_t(-127))
// Waits for shared memory only: after a full barrier other data, x above all, would be read again.
#define subgroup_waits() \
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease)

// Indices of an invocation's four numbers of a matrix of sums: two neighbouring tokens of rows own_row and own_row + 8.
// This holds on the devices that the module is for; on others the proof at load fails.
uint own_row, own_pair;
void find_own_rows() {
  if (gl_LocalInvocationIndex < 32u)
    staged[gl_LocalInvocationIndex] = 4u * gl_LocalInvocationIndex + uvec4(0u, 1u, 2u, 3u);
  barrier();
  sums_of indices;
  coopMatLoad(indices, staged, 0u, 2u, gl_CooperativeMatrixLayoutRowMajor);
  own_row = uint(indices[0]) / 8u;
  own_pair = uint(indices[0]) % 8u / 2u;
  barrier();
}

// The adjacent bytes of 32 columns and 8 tokens: an invocation has two words of a token.
bytes_of bytes_at(Words from, uint pair) {
  uvec2 two = word_pair(from, pair + LANE);
  i8vec4 low = unpack8(int(two.x)), high = unpack8(int(two.y));
  bytes_of out_;
  [[unroll]] for (uint k = 0u; k < 4u; ++k) {
    out_[k] = low[k];
    out_[4u + k] = high[k];
  }
  return out_;
}

vec4 sums[step_blocks * row_fragments * token_fragments];  // by block, fragment of rows and of tokens

// Adds block b of the subgroup's round. x, scales: those of the first token's tile and the round's first block.
void add_block(uint b, Words x, Words scales) {
  LATER_UNROLLED for (uint part = 0u; part < parts; ++part) {
    codes_of codes[2];
    sums_of middle_from[2], lower_from[2];
    vec2 factor[2], second[2];
    LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) if (r < row_fragments) {
      coopMatLoad(codes[r], staged, SUBGROUP * subgroup_quads + 16u * r * weight_stride + 2u * (parts * b + part),
                  weight_stride, gl_CooperativeMatrixLayoutRowMajor);
      middle_from[r] = coopMatMulAdd(codes[r], lowest_bytes, sums_of(middle_start));
      lower_from[r] = coopMatMulAdd(codes[r], lowest_bytes, sums_of(lower_start));
      uint at = (SUBGROUP * step_blocks + b) * factor_stride + 8u * r + own_row;
      factor[r] = parts == 2u && part == 1u ? second_factors[at] : factors[at];
      if (adds) second[r] = second_factors[at];
    }
    LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) {
      bytes_of from_x[3];
      LATER_UNROLLED for (uint plane = 0u; plane < 3u; ++plane) from_x[plane] =
          bytes_at(x, (t * 56u * blocks + b * 48u + plane * 16u) * 2u);
      uint at = t * 112u * blocks + 8u * b + own_pair;
      vec2 scale_ = FloatPairs(scales).at[at], whole_ = adds ? FloatPairs(scales).at[at + 4u] : vec2(0.0);
      LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) if (r < row_fragments) {
        sums_of upper = coopMatMulAdd(codes[r], from_x[0], sums_of(upper_start)),
                middle = coopMatMulAdd(codes[r], from_x[1], middle_from[r]),
                lower = coopMatMulAdd(codes[r], from_x[2], lower_from[r]);
        uint which = (b * row_fragments + r) * token_fragments + t;
        LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
          precise float rest = (of_both - intBitsToFloat(middle[i])) - intBitsToFloat(lower[i]);
          precise float whole = (intBitsToFloat(upper[i]) - of_upper) + rest;
          precise float sum = sums[which][i] + whole * (factor[r][i / 2u] * scale_[i & 1u]);
          if (adds) sum = sum + whole_[i & 1u] * (second[r][i / 2u] * scale_[i & 1u]);
          sums[which][i] = sum;
        }
      }
    }
  }
}

void main() {
  if (experts_used != 0u && (own_input | list_tokens) != 0u) return;  // matmul_batch_matrix computes lists of experts
  // Workgroups that run at the same time have tiles of tokens of the same rows.
  uint linear = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  uint first_token = linear % gl_NumWorkGroups.y * tile_tokens, wanted_row = linear / gl_NumWorkGroups.y * tile_rows,
       count = state.at[state_count];
  uint first_row = rows < tile_rows ? 0u : min(wanted_row, rows - tile_rows);
  read_epilogue();
  find_inputs(first_row);
  load_weights(0u);
  find_own_rows();
  uvec2 of_tile = advanced(uvec2(input_), first_token * 112u * blocks);
  LATER_UNROLLED for (uint k = 0u; k < step_blocks * row_fragments * token_fragments; ++k) sums[k] = vec4(0.0);
  for (uint round_ = 0u; round_ < rounds; ++round_) {
    subgroup_waits();  // the previous weights have been read
    stage_weights(round_);
    subgroup_waits();
    load_weights(min(round_ + 1u, rounds - 1u));
    uint block = 32u * round_ + SUBGROUP * step_blocks;
    Words x = Words(advanced(of_tile, 768u * block)), scales = Words(advanced(of_tile, 768u * blocks + 64u * block));
// At most four: a workgroup has eight subgroups or more. Unrolled, so that sums stay in registers.
#define one_block(b) \
  if (b < step_blocks && (blocks % 32u == 0u || block + b < blocks)) add_block(b, x, scales);
    one_block(0u) one_block(1u) one_block(2u) one_block(3u)
  }

  // Sums by virtual lane, token and row, of 8 tokens at a time. Each of four neighbouring invocations has every fourth
  // virtual lane.
  LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) {
    barrier();
    LATER_UNROLLED for (uint b = 0u; b < step_blocks; ++b)
        LATER_UNROLLED for (uint r = 0u; r < 2u; ++r) if (r < row_fragments)
            LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
      uint row = 16u * r + own_row + 8u * (i / 2u),
           at = ((SUBGROUP * step_blocks + b) * 8u + 2u * own_pair + (i & 1u)) * sum_stride;
      staged[at + row / 4u][row & 3u] = floatBitsToUint(sums[(b * row_fragments + r) * token_fragments + t][i]);
    }
    barrier();
    for (uint item = gl_LocalInvocationIndex; item < 32u * tile_groups; item += workgroup_size) {
      uint quarter = item & 3u, token = item / 4u % 8u, group = item / 32u;
      precise vec4 y[8];
      LATER_UNROLLED for (uint k = 0u; k < 8u; ++k) y[k] =
          uintBitsToFloat(staged[((4u * k + quarter) * 8u + token) * sum_stride + group]);
      LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) y[k] = y[k] + y[k + 4u];
      LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) y[k] = y[k] + y[k + 2u];
      y[0] = y[0] + y[1];
      y[0] = y[0] + subgroupShuffleXor(y[0], 2u);
      y[0] = y[0] + subgroupShuffleXor(y[0], 1u);
      uint at = first_row / 4u + group;
      token += first_token + 8u * t;
      if (quarter == 0u && token < count && at >= wanted_row / 4u && at < groups) finish(token, at, y[0]);
    }
  }
}
