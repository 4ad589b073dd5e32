// SPDX-License-Identifier: MIT
// matmul_batch by cooperative matrices of int8, with the same bits. A workgroup has a tile of rows and tokens and
// stages eight blocks of columns at a time in shared memory as int8: subgroup s has the blocks whose number modulo
// eight is s, so that a product of matrices is the whole integer sum of a block. The lower bytes of x are stored as 127
// minus the byte. Integers are the last bits of 1.5 * 2^23, 2^31 or 2^39, so that a subtraction makes them floats,
// times 1, 256 or 65536: everything is exact up to the point where matmul rounds.
// variant: matmul_batch_matrix -DWIDE_LOADS=0
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
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
#include "listed.glsl"

const uint step_blocks = 8u;  // of columns; this number of subgroups shares a row
const uint row_parts = workgroup_size / (step_blocks * subgroup_width), part_rows = tile_rows / row_parts,
           row_fragments = part_rows / 16u, token_fragments = tile_tokens / 8u;
const uint groups = rows / 4u, tile_groups = tile_rows / 4u;
// If halves of a block have factors of their own, they are treated as blocks, with zeros for the other half.
const uint parts = codec == codec_q6_k ? 2u : 1u;
const bool has_second = codec == codec_q4_1 || codec == codec_q4_k || codec == codec_q6_k,
           adds = codec == codec_q4_1 || codec == codec_q4_k;

// Rows of weights, then rows of bits 16 .. 23, 8 .. 15 and 0 .. 7 of the tokens; each row is 16 bytes longer, so that
// neighbours begin in different banks. At the end the buffer holds the subgroups' sums.
const uint weight_stride = 2u * parts * step_blocks + 1u, x_stride = 2u * step_blocks + 1u,
           first_x = tile_rows * weight_stride;
const uint staged_quads = first_x + 3u * tile_tokens * x_stride, sum_stride = tile_groups + 1u,
           sum_quads = step_blocks * tile_tokens * sum_stride;
shared uvec4 staged[staged_quads > sum_quads ? staged_quads : sum_quads];
const uint factor_stride = tile_rows + 4u, scale_stride = tile_tokens / 2u + 2u;
shared float factors[step_blocks * factor_stride], second_factors[has_second ? step_blocks * factor_stride : 1u];
shared vec2 scales[step_blocks * scale_stride], wholes[adds ? step_blocks * scale_stride : 1u];

// An invocation's registers for the next columns: a block of a row, quads of x, and the scale of a token's block.
const uint weight_items = tile_rows * step_blocks, weight_slots = (weight_items + workgroup_size - 1u) / workgroup_size;
const uint x_items = tile_tokens * 6u * step_blocks, x_slots = (x_items + workgroup_size - 1u) / workgroup_size;
raw_codes next_codes[weight_slots];
uvec4 next_factors[weight_slots], next_x[x_slots], next_rest;

// Addresses of its rows' codes and factors, and of its quads of x.
lane_addresses row_at[weight_slots];
uvec2 factors_at[weight_slots];
uint x_at[x_slots], rest_at;

void find_inputs(uint first_row, tile_range tile) {
  LATER_UNROLLED for (uint i = 0u; i < weight_slots; ++i) {
    uint row = min(first_row + min((gl_LocalInvocationIndex + i * workgroup_size) / step_blocks, tile_rows - 1u),
                   rows - 1u),
         r = row & 3u;
    row_at[i] = addresses_in_group(weight, tile.first_group + row / 4u, 0u);
    uint after = codec == codec_q8_0 ? 128u * blocks : codec == codec_q6_k ? 96u * blocks : 64u * blocks;  // the codes
    factors_at[i] = advanced(row_at[i].group, after + (codec == codec_q4_k   ? r / 2u * 32u
                                                       : codec == codec_q4_1 ? 4u * r
                                                                             : r / 2u * 4u));
    row_at[i].quads = advanced(row_at[i].group, (codec == codec_q8_0 ? 32u : 16u) * blocks * r);
    row_at[i].pairs = advanced(row_at[i].group, 8u * blocks * r);
  }
  LATER_UNROLLED for (uint i = 0u; i < x_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size, of_token = item / (2u * step_blocks),
         token = input_of(tile, min(of_token % tile_tokens, tile.tokens - 1u));
    x_at[i] = (token * 7u + 2u * min(of_token / tile_tokens, 2u) + (item & 1u)) * blocks;
  }
  rest_at = (input_of(tile, min(gl_LocalInvocationIndex / step_blocks, tile.tokens - 1u)) * 7u + 6u) * blocks;
}

// Missing blocks, rows and tokens repeat the last one: a load without a condition does not wait for earlier loads.
uint block_at(uint first_block, uint b) {
  return blocks % step_blocks == 0u ? first_block + b : min(first_block + b, blocks - 1u);
}

void load_weights(uint first_block) {
  uint block = block_at(first_block, gl_LocalInvocationIndex % step_blocks);
  LATER_UNROLLED for (uint i = 0u; i < weight_slots; ++i) {
    next_codes[i] = load_codes(lane_addresses(row_at[i].group, advanced(row_at[i].quads, 16u * block),
                                              advanced(row_at[i].pairs, 8u * block), uvec2(0u)),
                               0u);
    if (codec == codec_q4_k)
      next_factors[i] = six_bit_words(Words(advanced(factors_at[i], 64u * (block / 8u))), 0u, block);
    else next_factors[i].x = Words(advanced(factors_at[i], (codec == codec_q4_1 ? 16u : 8u) * block)).at[0];
    if (codec == codec_q6_k) next_factors[i].z = Words(advanced(factors_at[i], 8u * (block / 8u))).at[2u * blocks];
  }
}
void load_x(uint first_block) {
  uint block = block_at(first_block, gl_LocalInvocationIndex / 2u % step_blocks);
  LATER_UNROLLED for (uint i = 0u; i < x_slots; ++i) next_x[i] = word_quad(input_, x_at[i] + block);
  uint at = rest_at + block_at(first_block, gl_LocalInvocationIndex % step_blocks);
  if (adds) next_rest = word_quad(input_, at);
  else next_rest.x = input_.at[4u * at];
}

vec3 own_row_factors(uvec4 own, uint r, uint block) {
  raw_factors raw;
  raw.row[0] = own;
  return row_factors(raw, codec == codec_q4_1 ? 0u : r & 1u, block);
}
uint signed_word(raw_codes raw, uint e) {
  uint word = code_word(raw, e);
  return codec == codec_q4_0 ? (word + 0x78787878u) ^ 0x80808080u : word;  // minus 8
}

void stage_columns(uint first_block) {
  uint b = gl_LocalInvocationIndex % step_blocks;
  LATER_UNROLLED for (uint i = 0u; i < weight_slots;
                      ++i) if (weight_items % workgroup_size == 0u ||
                               gl_LocalInvocationIndex + i * workgroup_size < weight_items) {
    uint row = (gl_LocalInvocationIndex + i * workgroup_size) / step_blocks, at = row * weight_stride + 2u * parts * b;
    raw_codes raw = next_codes[i];
    uvec4 low = uvec4(signed_word(raw, 0u), signed_word(raw, 1u), signed_word(raw, 2u), signed_word(raw, 3u));
    uvec4 high = uvec4(signed_word(raw, 4u), signed_word(raw, 5u), signed_word(raw, 6u), signed_word(raw, 7u));
    // Lanes that would use the same bank begin with the other half.
    uint other = b / 4u & 1u;
    staged[at + other * (2u * parts - 1u)] = other == 0u ? low : high;
    staged[at + (1u - other) * (2u * parts - 1u)] = other == 0u ? high : low;
    if (parts == 2u) staged[at + 1u] = staged[at + 2u] = uvec4(0u);
    vec3 factor = own_row_factors(next_factors[i], row & 3u, block_at(first_block, b));
    factors[b * factor_stride + row] = factor.x;
    if (has_second) second_factors[b * factor_stride + row] = adds ? factor.z : factor.y;
  }
  LATER_UNROLLED for (uint i = 0u; i < x_slots; ++i) {
    uint item = gl_LocalInvocationIndex + i * workgroup_size, of_token = item / (2u * step_blocks);
    if (item < x_items)
      staged[first_x + of_token * x_stride + item % (2u * step_blocks)] =
          next_x[i] ^ (of_token < tile_tokens ? 0u : 0x7f7f7f7fu);
  }
  if (gl_LocalInvocationIndex < tile_tokens * step_blocks) {
    uint token = gl_LocalInvocationIndex / step_blocks, at = b * scale_stride + token / 2u;
    scales[at][token & 1u] = uintBitsToFloat(next_rest.x);
    if (adds) {
      precise float whole = float(int(next_rest.y)) * 65536.0 + float(int(next_rest.z));
      wholes[at][token & 1u] = whole;
    }
  }
}

const int lower_start = 0x4b400000, middle_start = 0x4f400000,
          upper_start = 0x53400000;                             // as floats 1.5 * 2^23, 2^31 and 2^39
const float of_both = 3233808384.0, of_upper = 824633720832.0;  // 1.5 * (2^23 + 2^31) and 1.5 * 2^39
#define sums_of coopmat<int, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define codes_of coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>
#define bytes_of coopmat<int8_t, gl_ScopeSubgroup, 32, 8, gl_MatrixUseB>

// Indices of an invocation's four numbers of a matrix of sums: two rows, two neighbouring tokens each. This holds on
// the devices that the module is for; on others the proof at load fails.
uvec2 own_row;
uint own_pair;

float sums[4][4];  // of 16 rows and 8 tokens at a time: the token fragments of a row fragment are adjacent

void add_blocks(uint b, uint first_row) {
  LATER_UNROLLED for (uint part = 0u; part < parts; ++part) {
    codes_of codes[4];
    sums_of middle_from[4], lower_from[4];
    vec2 factor[4], second[4];
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) if (r < row_fragments) {
      coopMatLoad(codes[r], staged, (first_row + 16u * r) * weight_stride + 2u * (parts * b + part), weight_stride,
                  gl_CooperativeMatrixLayoutRowMajor);
      middle_from[r] = coopMatMulAdd(codes[r], bytes_of(int8_t(-127)), sums_of(middle_start));
      lower_from[r] = coopMatMulAdd(codes[r], bytes_of(int8_t(-127)), sums_of(lower_start));
      uvec2 at = b * factor_stride + first_row + 16u * r + own_row;
      factor[r] = parts == 2u && part == 1u ? vec2(second_factors[at.x], second_factors[at.y])
                                            : vec2(factors[at.x], factors[at.y]);
      if (adds) second[r] = vec2(second_factors[at.x], second_factors[at.y]);
    }
    LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (t < token_fragments) {
      bytes_of x[3];
      LATER_UNROLLED for (uint plane = 0u; plane < 3u; ++plane)
          coopMatLoad(x[plane], staged, first_x + (plane * tile_tokens + 8u * t) * x_stride + 2u * b, x_stride,
                      gl_CooperativeMatrixLayoutColumnMajor);
      uint at = b * scale_stride + 4u * t + own_pair;
      vec2 scale_ = scales[at], whole_ = adds ? wholes[at] : vec2(0.0);
      LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) if (r < row_fragments) {
        sums_of upper = coopMatMulAdd(codes[r], x[0], sums_of(upper_start)),
                middle = coopMatMulAdd(codes[r], x[1], middle_from[r]),
                lower = coopMatMulAdd(codes[r], x[2], lower_from[r]);
        LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
          precise float rest = (of_both - intBitsToFloat(middle[i])) - intBitsToFloat(lower[i]);
          precise float whole = (intBitsToFloat(upper[i]) - of_upper) + rest;
          precise float sum = sums[token_fragments * r + t][i] + whole * (factor[r][i / 2u] * scale_[i & 1u]);
          if (adds) sum = sum + whole_[i & 1u] * (second[r][i / 2u] * scale_[i & 1u]);
          sums[token_fragments * r + t][i] = sum;
        }
      }
    }
  }
}

void find_own_rows() {
  if (gl_LocalInvocationIndex < 32u)
    staged[gl_LocalInvocationIndex] = 4u * gl_LocalInvocationIndex + uvec4(0u, 1u, 2u, 3u);
  barrier();
  sums_of indices;
  coopMatLoad(indices, staged, 0u, 2u, gl_CooperativeMatrixLayoutRowMajor);
  own_row = uvec2(indices[0], indices[2]) / 8u;
  own_pair = uint(indices[0]) % 8u / 2u;
}

#define each_sum LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)

// A step is eight blocks. Turn 0 has the steps of virtual lanes 0 .. 7, the other turns those from 16, 8 and 24 on: the
// turns that the butterfly adds first come first.
const uint steps = (blocks + step_blocks - 1u) / step_blocks, turns = 4u;
uint start_of(uint turn) { return turn < turns ? (turn & 1u) * 16u + (turn & 2u) * 4u : blocks; }
void advance(inout uint turn, inout uint block) {
  block += 32u;
  for (uint k = 0u; k < turns && block >= blocks && turn < turns; ++k) block = start_of(++turn);
}

float saved[32];  // indexed by variables: memory that takes no registers

// Adds up at the end of a turn. The last turn leaves the total in `sums`.
void end_turn(uint turn) {
  uint second = (turn & 1u) * 16u, last = turn / 3u * 16u;
  each_sum {
    precise float both = sums[f][i];
    if ((turn & 1u) != 0u) both = saved[4u * f + i] + both;
    if (turn == 3u) both = saved[4u * f + i + last] + both;
    saved[4u * f + i + second] = both;
    sums[f][i] = turn == 3u ? both : 0.0;
  }
}

void main() {
  // Workgroups that run at the same time have tiles of tokens of the same rows.
  uint linear = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  uint first_row = linear / gl_NumWorkGroups.y * tile_rows;
  tile_range tile = find_tile(linear % gl_NumWorkGroups.y);
  if (listed && !tile.wanted) return;
  read_epilogue();
  find_inputs(first_row, tile);
  uint turn = 0u, block = 0u, next_turn = 0u, next_block = 0u;
  advance(next_turn, next_block);
  load_weights(0u);
  load_x(0u);
  find_own_rows();
  uint s = gl_SubgroupID % step_blocks, part_row = gl_SubgroupID / step_blocks * part_rows;
  each_sum sums[f][i] = 0.0;
  for (uint step_ = 0u; step_ < steps; ++step_) {
    barrier();  // the previous columns have been read
    stage_columns(block);
    barrier();
    load_weights(next_block < blocks ? next_block : block);
    load_x(next_block < blocks ? next_block : block);
    if (blocks % step_blocks == 0u || block + s < blocks) add_blocks(s, part_row);
    for (uint ended = turn; ended < next_turn; ++ended) end_turn(ended);
    turn = next_turn, block = next_block;
    advance(next_turn, next_block);
  }

  // Sums by subgroup, token and row.
  barrier();
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r)
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) if (r < row_fragments && t < token_fragments)
          LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
    uint row = part_row + 16u * r + own_row[i / 2u], token = 8u * t + 2u * own_pair + (i & 1u);
    staged[(s * tile_tokens + token) * sum_stride + row / 4u][row & 3u] =
        floatBitsToUint(sums[token_fragments * r + t][i]);
  }
  barrier();
  for (uint item = gl_LocalInvocationIndex; item < tile_tokens * tile_groups; item += workgroup_size) {
    uint token = item / tile_groups, group = item % tile_groups, at = token * sum_stride + group;
    precise vec4 y[8];
    LATER_UNROLLED for (uint k = 0u; k < 8u; ++k) y[k] = uintBitsToFloat(staged[k * tile_tokens * sum_stride + at]);
    LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) y[k] = y[k] + y[k + 4u];
    LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) y[k] = y[k] + y[k + 2u];
    y[0] = y[0] + y[1];
    if (token < tile.tokens && tile.wanted && first_row / 4u + group < groups)
      finish(row_of(tile, token), first_row / 4u + group, y[0]);
  }
}
