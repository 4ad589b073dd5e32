// SPDX-License-Identifier: MIT
// Products of coded weights and f32 activations, with a norm before and an epilogue (residual, rotary embedding and
// cache, gate). A subgroup takes groups of 4 rows; virtual lanes stride over octets of columns of dense weights, or
// over blocks of 32 columns, whose codes are multiplied by activations of 24 bits in integers.
// variant: matmul -DWIDE_LOADS=0 -DINTEGER_DOT=1
// variant: matmul_portable -DWIDE_LOADS=0 -DINTEGER_DOT=0
// variant: matmul_cpu -DWIDE_LOADS=1 -DINTEGER_DOT=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
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
layout(constant_id = 3) const uint codec = 0;
layout(constant_id = 4) const uint prologue = 0;
layout(constant_id = 5) const uint epilogue = 0;
layout(constant_id = 6) const float eps = 1e-5;
layout(constant_id = 7) const uint tile_tokens = 1;
layout(constant_id = 8) const uint staged = 1;
layout(constant_id = 9) const uint head_dim = 64;
layout(constant_id = 10) const uint q_size = 256;
layout(constant_id = 11) const uint kv_size = 64;
layout(constant_id = 12) const uint context = 256;
layout(constant_id = 13) const uint ring = 0;
layout(constant_id = 14) const uint cache_element = 0;
layout(constant_id = 15) const uint subgroup_width = 0;
layout(constant_id = 16) const uint experts_used = 0;
layout(constant_id = 17) const uint own_input = 0;
layout(constant_id = 18) const uint slot_words = 0;
layout(constant_id = 19) const uint page_size = 0;
layout(constant_id = 20) const uint keeps_firsts = 0;
const uint per_token = experts_used == 0u ? 1u : experts_used;  // rows of the output per token
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool normalises = prologue == 3u;  // with a norm first
const uint norm_width = normalises ? columns : 0u;
#include "norm.glsl"
#include "codec.glsl"

#if WIDE_LOADS
layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, weight, output_, state, keys, values, rope, choice, gates, firsts;
}
pushed;
Words input_, norm_weight, weight, output_, state, keys, values, rope, choice, gates, firsts;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  weight = pushed.weight;
  output_ = pushed.output_;
  state = pushed.state;
  keys = pushed.keys;
  values = pushed.values;
  rope = pushed.rope;
  choice = pushed.choice;
  gates = pushed.gates;
  firsts = pushed.firsts;
}
#else
layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, weight, output_, state, keys, values, rope, choice, gates, firsts;
};
#define take_pushed()
#endif

// In modules for GPUs, loops of constant length are unrolled ahead of the driver, which puts arrays of loops that it
// unrolls itself into memory.
#if WIDE_LOADS
#define EACH_UNROLLED LATER_UNROLLED
#else
#define EACH_UNROLLED [[unroll]]
#endif
#include "coded_product.glsl"

#define UNSCALED
#define rope_of(position, pair) rope_from_turns(position, word_pair(rope, pair))
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"
#define RANKED_INVOCATIONS (keeps_firsts != 0u ? workgroup_size : 4u)
#include "first_token.glsl"

float inverse[tile_tokens];  // 1 / root mean square of each token of the tile

// If tokens of one expert are listed by expert_tiles: the tile's index in the list, and its rows of the output.
const bool listed = experts_used != 0u && tile_tokens > 1u;
uint listed_at, listed_rows[listed ? tile_tokens : 1u];
uint row_of(uint first_row, uint t) { return listed ? choice.at[listed_at + t] : first_row + t; }
uint input_of_row(uint row) { return own_input != 0u ? row : row / per_token; }
// Input row of the tile's token t.
uint token_of(uint first_token, uint t) { return listed ? input_of_row(choice.at[listed_at + t]) : first_token + t; }
uint token_at(uint first_token, uint t) {
  return listed ? input_of_row(listed_rows[t]) : first_token + t;
}  // t: unrolled

// Columns 4 * quad .. 4 * quad + 3 of a token, token t of the tile.
vec4 activations(uint token, uint t, uint quad) {
  precise vec4 y = float_quad(input_, token * (columns / 4u) + quad);
  if (normalises) y = (y * float_quad(norm_weight, quad)) * inverse[tile_tokens == 1u ? 0u : t];
  return y;
}

const uint staged_blocks = tile_tokens * (columns / 32u), staged_octets = tile_tokens * ((columns + 7u) / 8u);
shared uvec4 shared_x[staged == 0u ? 1u : codec <= element_bf16 ? 2u * staged_octets : 6u * staged_blocks];
shared uvec2 shared_scales[staged == 0u || codec <= element_bf16 ? 1u : staged_blocks];

// The words that quad e of a block sets: `put` gets a word's index, in planes of four, and its content.
#if INTEGER_DOT
#define EACH_FIXED_WORD(put, e, upper, lower)                                                       \
  put((e) >> 2, uint(e) & 3u, packed(upper)) put(2u + ((e) >> 2), uint(e) & 3u, packed(lower >> 8)) \
      put(4u + ((e) >> 2), uint(e) & 3u, packed(lower))
#else
#define EACH_FIXED_WORD(put, e, upper, lower)                                        \
  put((e) >> 2, uint(e) & 3u, packed(upper))                                         \
      put(2u + ((e) >> 1), 2u * (uint(e) & 1u), uint(lower.x) | uint(lower.y) << 16) \
          put(2u + ((e) >> 1), 2u * (uint(e) & 1u) + 1u, uint(lower.z) | uint(lower.w) << 16)
#endif
#define PUT_SHARED(plane, component, word) shared_x[uint(plane) * staged_blocks + at][component] = word;

fixed_block fix(uint token, uint t, uint block) {
  vec4 y[8];
  uint greatest_bits = 0u;
  LATER_UNROLLED for (uint e = 0u; e < 8u; ++e) {
    y[e] = activations(token, t, 8u * block + e);
    uvec4 bits = floatBitsToUint(y[e]) & 0x7fffffffu;
    greatest_bits = max(greatest_bits, max(max(bits.x, bits.y), max(bits.z, bits.w)));
  }
  uint exponent = clamp(greatest_bits >> 23, 23u, 254u);
  float factor = uintBitsToFloat((276u - exponent) << 23);
  fixed_block x;
  x.scale = greatest_bits < 0x7f800000u ? uintBitsToFloat((exponent - 22u) << 23) : not_a_number;
  x.sums = ivec2(0);
  LATER_UNROLLED for (uint e = 0u; e < 8u; ++e) {
    precise vec4 scaled = y[e] * factor;
    ivec4 q = clamp(ivec4(roundEven(scaled)), -8388608, 8388607), upper = q >> 16, lower = q & 0xffff;
    x.sums += ivec2(sum_of(upper), sum_of(lower));
#define PUT(plane, component, word) x.words[plane][component] = word;
    EACH_FIXED_WORD(PUT, e, upper, lower)
  }
  return x;
}

// Writes x of the tile to shared memory.
void stage(uint first_token, uint tokens) {
  if (dense) {
    for (uint i = gl_LocalInvocationIndex; i < tokens * 2u * octets; i += workgroup_size) {
      uint t = i / (2u * octets), quad = i % (2u * octets);
      shared_x[i] = quad < columns / 4u ? floatBitsToUint(activations(token_of(first_token, t), t, quad)) : uvec4(0u);
    }
  } else if (INTEGER_DOT != 0 && subgroup_width >= 8u) {
    // Eight lanes per block, one quad each.
    for (uint i = gl_LocalInvocationIndex; i < tokens * 8u * blocks; i += workgroup_size) {
      uint t = i / (8u * blocks), e = i & 7u;
      vec4 y = activations(token_of(first_token, t), t, i % (8u * blocks));
      uvec4 bits = floatBitsToUint(y) & 0x7fffffffu;
      uint greatest_bits = max(max(bits.x, bits.y), max(bits.z, bits.w));
      LATER_UNROLLED for (uint k = 0u; k < 3u; ++k) greatest_bits =
          max(greatest_bits, subgroupShuffleXor(greatest_bits, 1u << k));
      uint exponent = clamp(greatest_bits >> 23, 23u, 254u);
      precise vec4 scaled = y * uintBitsToFloat((276u - exponent) << 23);
      ivec4 q = clamp(ivec4(roundEven(scaled)), -8388608, 8388607), upper = q >> 16, lower = q & 0xffff;
      ivec2 sums_ = ivec2(sum_of(upper), sum_of(lower));
      LATER_UNROLLED for (uint k = 0u; k < 3u; ++k) sums_ +=
          ivec2(subgroupShuffleXor(sums_.x, 1u << k), subgroupShuffleXor(sums_.y, 1u << k));
      uint at = i >> 3;
      EACH_FIXED_WORD(PUT_SHARED, e, upper, lower)
      uint scale_ = greatest_bits < 0x7f800000u ? (exponent - 22u) << 1 : floatBitsToUint(not_a_number) >> 22;
      if (e == 0u) shared_scales[at] = uvec2(scale_ | uint(sums_.x) << 16, uint(sums_.y));
    }
  } else {
    for (uint i = gl_LocalInvocationIndex; i < tokens * blocks; i += workgroup_size) {
      fixed_block x = fix(token_of(first_token, i / blocks), i / blocks, i % blocks);
      LATER_UNROLLED for (uint p = 0u; p < 6u; ++p) shared_x[p * staged_blocks + i] = x.words[p];
      shared_scales[i] = uvec2((floatBitsToUint(x.scale) >> 22) | uint(x.sums.x) << 16, uint(x.sums.y));
    }
  }
}

octet octet_of_x(uint first_token, uint t, uint index) {
  uint quad = 2u * index;
  if (staged != 0u)
    return octet(uintBitsToFloat(shared_x[t * 2u * octets + quad]),
                 uintBitsToFloat(shared_x[t * 2u * octets + quad + 1u]));
  uint token = token_at(first_token, t);
  return octet(activations(token, t, quad), quad + 1u < columns / 4u ? activations(token, t, quad + 1u) : vec4(0.0));
}

fixed_block block_of_x(uint first_token, uint t, uint block) {
  if (staged == 0u) return fix(token_at(first_token, t), t, block);
  uint i = t * blocks + block;
  fixed_block x;
  EACH_UNROLLED for (uint p = 0u; p < 6u; ++p) x.words[p] = shared_x[p * staged_blocks + i];
  uvec2 rest = shared_scales[i];
  x.scale = uintBitsToFloat(rest.x << 22);
  x.sums = ivec2(int(rest.x) >> 16, int(rest.y));
  return x;
}

#define each_row(r) LATER_UNROLLED for (uint r = 0u; r < 4u; ++r)
#define each_token(t) LATER_UNROLLED for (uint t = 0u; t < tile_tokens; ++t)

const bool single = subgroup_width >= 32u;  // a lane is one virtual lane
#define units (dense ? octets : blocks)

// Sums of a lane for a group: eight for an octet's columns, or one.
vec4 sums[tile_tokens * (codec <= 2u ? 8u : 1u)];

// Sums of the group's rows over virtual lane j of the lane.
void multiply(uint first_token, uint tokens, uint group, uint j) {
  LATER_UNROLLED for (uint i = 0u; i < tile_tokens * (codec <= 2u ? 8u : 1u); ++i) sums[i] = vec4(0.0);
  for (uint unit = virtual_lane + j * virtual_width; unit < units; unit += 32u) {
    raw_codes raw[4];
    lane_addresses from = addresses_in_group(weight, group, unit);
    each_row(r) raw[r] = load_codes(from, r);
    raw_factors factors = load_factors(from, unit);
    each_token(t) if (t < tokens) {
      if (dense) {
        octet x = octet_of_x(first_token, t, unit);
        each_row(r) {
          octet w = octet_of(raw[r]);
          precise vec4 low = w.low * x.low, high = w.high * x.high;
          precise vec4 low_sum = sums[8u * t + 2u * r] + low, high_sum = sums[8u * t + 2u * r + 1u] + high;
          sums[8u * t + 2u * r] = low_sum;
          sums[8u * t + 2u * r + 1u] = high_sum;
        }
      } else {
        fixed_block x = block_of_x(first_token, t, unit);
        each_row(r) sums[t][r] = add_block(sums[t][r], raw[r], f16_factors(factors, r, unit), x);
      }
    }
  }
}

vec4 lane_sum(uint t) {
  if (!dense) return sums[t];
  vec4 y;
  each_row(r) y[r] = sum8(sums[8u * t + 2u * r], sums[8u * t + 2u * r + 1u]);
  return y;
}

// The first token of a group's rows in the sampler's order.
uvec2 first_of_rows(uint group, vec4 y) {
  uvec2 first = uvec2(0u);
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
    uint row = 4u * group + r;
    first = earlier(first, row < rows ? uvec2(key_of(y[r]), ~row) : uvec2(0u));
  }
  return first;
}

void leave_first(uvec2 own, bool wanted) {
  if (keeps_firsts == 0u) return;
  own = first_of(own);
  if (gl_LocalInvocationIndex == 0u && wanted) WordPairs(firsts).at[gl_WorkGroupID.x] = own;
}

void finish_rows(uint token, uint group, vec4 y) {
  if (rows % 4u == 0u) {
    finish(token, group, y);
    if (epilogue == epilogue_gated && uvec2(gates) != uvec2(0u))
      FloatPairs(gates).at[token * (rows / 4u) + group] = y.xz;
  } else {
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) if (4u * group + r < rows) {
      uint at = token * rows + 4u * group + r;
      precise float sum = epilogue == epilogue_add ? Floats(output_).at[at] + y[r] : y[r];
      Floats(output_).at[at] = sum;
    }
  }
}

#if !WIDE_LOADS
// Code for one token if a lane is one virtual lane. A lane's data of four rows at a time: an octet of columns, or a
// block.
struct lane_unit {
  raw_codes row[4];
  raw_factors factors;
};
#define each_unit_row(r) [[unroll]] for (uint r = 0u; r < 4u; ++r)

lane_unit load_unit(uint group, uint first) {
  uint index = first + virtual_lane;
  if (units % 32u != 0u) index = min(index, units - 1u);
  lane_unit unit;
  lane_addresses from = addresses_in_group(weight, group, index);
  each_unit_row(r) unit.row[r] = load_codes(from, r);
  unit.factors = load_factors(from, index);
  return unit;
}

// Writes x of one token to shared memory, with loops of constant length: eight lanes per block, a quad each; a lane has
// quads of eight blocks at a time. If the norm has one chunk, these are the quads that it kept.
void stage_one(uint token) {
  const uint quads = columns / 4u, width = subgroups * 32u;
  if (dense) {
    for (uint first = 0u; first < 2u * octets; first += workgroup_size) {
      uint quad = first + gl_LocalInvocationIndex;
      vec4 y = activations(token, 0u, min(quad, quads - 1u));
      if (quad < 2u * octets) shared_x[quad] = quad < quads ? floatBitsToUint(y) : uvec4(0u);
    }
    return;
  }
  for (uint first = 0u; first < quads; first += 8u * width) {
    vec4 y[8];
    [[unroll]] for (uint s = 0u; s < 8u; ++s) {
      uint quad = first + (s * subgroups + subgroup_index) * 32u + virtual_lane;
      y[s] = vec4(0.0);
      if (s * width < quads)
        y[s] = normalises && quads <= 8u * width ? normalised(s, inverse[0])
                                                 : activations(token, 0u, min(quad, quads - 1u));
    }
    [[unroll]] for (uint s = 0u; s < 8u; ++s)
      if (s * width < quads) {
        uint quad = first + (s * subgroups + subgroup_index) * 32u + virtual_lane, e = virtual_lane & 7u;
        uvec4 bits = floatBitsToUint(y[s]) & 0x7fffffffu;
        uint greatest_bits = max(max(bits.x, bits.y), max(bits.z, bits.w));
        [[unroll]] for (uint k = 1u; k < 8u; k <<= 1)
          greatest_bits = max(greatest_bits, subgroupShuffleXor(greatest_bits, k));
        uint exponent = clamp(greatest_bits >> 23, 23u, 254u);
        precise vec4 scaled = y[s] * uintBitsToFloat((276u - exponent) << 23);
        ivec4 q = clamp(ivec4(roundEven(scaled)), -8388608, 8388607), upper = q >> 16, lower = q & 0xffff;
        ivec2 sums_ = ivec2(sum_of(upper), sum_of(lower));
        [[unroll]] for (uint k = 1u; k < 8u; k <<= 1)
          sums_ += ivec2(subgroupShuffleXor(sums_.x, k), subgroupShuffleXor(sums_.y, k));
        uint at = quad >> 3;
        if (quad < quads) {
          EACH_FIXED_WORD(PUT_SHARED, e, upper, lower)
          uint scale_ = greatest_bits < 0x7f800000u ? (exponent - 22u) << 1 : floatBitsToUint(not_a_number) >> 22;
          if (e == 0u) shared_scales[at] = uvec2(scale_ | uint(sums_.x) << 16, uint(sums_.y));
        }
      }
  }
}

// Computes the subgroup's groups some rounds of 32 units at a time, with the next rounds in flight meanwhile.
#define together 4u
lane_unit next_units[together];
#define rounds ((units + 31u) / 32u)
#define round_step (codec == codec_q4_0 || codec == codec_q4_1 || codec == element_f32 ? 2u : dense ? 4u : 1u)

void load_ahead(uint group, uint round) {
  [[unroll]] for (uint k = 0u; k < together; ++k)
    if (k == 0u || (round_step > k && (rounds % round_step == 0u || round + k < rounds)))
      next_units[k] = load_unit(group, 32u * (round + k));
}

// matrix: first group of the expert's matrix; row: of the output.
void multiply_one(uint token, uint row, uint matrix, uint group, uint end, bool wanted) {
  uvec2 first_here = uvec2(0u);
  for (; group < end; group += subgroups) {
    vec4 y = vec4(0.0);
    precise vec4 low[4], high[4];
    each_unit_row(r) low[r] = high[r] = vec4(0.0);
    for (uint round = 0u; round < rounds; round += round_step) {
      lane_unit now[together] = next_units;
      bool last = round + round_step >= rounds;
      uint next_group = last ? group + subgroups : group;
      if (next_group < end) load_ahead(matrix + next_group, last ? 0u : round + round_step);
      [[unroll]] for (uint k = 0u; k < together; ++k)
        if (k == 0u || (round_step > k && (rounds % round_step == 0u || round + k < rounds))) {
          uint index = 32u * (round + k) + virtual_lane;
          bool inside = units % 32u == 0u || index < units;
          if (units % 32u != 0u) index = min(index, units - 1u);
          if (dense) {
            octet x = octet_of_x(token, 0u, index);
            each_unit_row(r) {
              octet w = octet_of(now[k].row[r]);
              precise vec4 product_low = w.low * x.low, product_high = w.high * x.high;
              precise vec4 low_sum = low[r] + product_low, high_sum = high[r] + product_high;
              low[r] = inside ? low_sum : low[r];
              high[r] = inside ? high_sum : high[r];
            }
          } else if (k < 2u) {
            fixed_block x = block_of_x(token, 0u, index);
            each_unit_row(r) {
              float sum = add_block(y[r], now[k].row[r], f16_factors(now[k].factors, r, index), x);
              y[r] = inside ? sum : y[r];
            }
          }
        }
    }
    if (dense) each_unit_row(r) y[r] = sum8(low[r], high[r]);
    float sum = virtual_sum4(y);
    vec4 all = vec4(subgroupShuffle(sum, 0u), subgroupShuffle(sum, lane_quarter),
                    subgroupShuffle(sum, 2u * lane_quarter), subgroupShuffle(sum, 3u * lane_quarter));
    if (lane == 0u && wanted) finish_rows(row, group, all);
    if (keeps_firsts != 0u) first_here = earlier(first_here, first_of_rows(group, all));
  }
  leave_first(first_here, wanted);
}
#endif

void main() {
  take_pushed();
  find_lane();
  // With experts a token of the output is a pair of token and expert; a tile of several is one of a list.
  uint groups = (rows + 3u) / 4u, first_row = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count] * per_token;
  uint first_token = experts_used != 0u && own_input == 0u ? first_row / per_token : first_row;
#if !WIDE_LOADS
  if (single && tile_tokens == 1u) {
    // No early return if nothing is wanted: after one the driver diverges lanes.
    bool wanted = first_row < count;
    uint matrix = 0u;
    if (experts_used != 0u)
      matrix = wanted ? choice.at[first_row / per_token * 2u * per_token + first_row % per_token] * groups : 0u;
    // Neighbouring groups, as many as each other workgroup has: subgroups without groups help to prepare x.
    uint group = gl_WorkGroupID.x * groups / gl_NumWorkGroups.x + subgroup_index,
         end = (gl_WorkGroupID.x + 1u) * groups / gl_NumWorkGroups.x;
    if (group < end) load_ahead(matrix + group, 0u);
    float largest;
    if (normalises) inverse[0] = inverse_rms(input_, first_token * norm_quads, norm_weight, eps, largest);
    read_epilogue();
    if (staged != 0u) {
      stage_one(first_token);
      workgroup_barrier();
    }
    multiply_one(first_token, first_row, matrix, group, end, wanted);
    return;
  }
#endif
  uint tokens, first_group = 0u;
  if (listed) {
    listed_at = gl_WorkGroupID.y * (tile_tokens + 2u) + 2u;
    tokens = min(choice.at[listed_at - 1u], tile_tokens);
    if (tokens == 0u) return;
    first_group = choice.at[listed_at - 2u] * groups;
    LATER_UNROLLED for (uint t = 0u; t < tile_tokens; ++t) listed_rows[listed ? t : 0u] =
        choice.at[listed_at + min(t, tokens - 1u)];
  } else {
    if (first_row >= count) return;
    tokens = min(count - first_row, tile_tokens);
    if (experts_used != 0u)
      first_group = choice.at[first_row / per_token * 2u * per_token + first_row % per_token] * groups;
  }
  if (normalises)
    for (uint t = 0u; t < tokens; ++t) {
      if (t != 0u) workgroup_barrier();  // the previous token's sums have been read
      float largest, r = inverse_rms(input_, token_of(first_token, t) * norm_quads, norm_weight, eps, largest);
      LATER_UNROLLED for (uint i = 0u; i < tile_tokens; ++i) if (i == t) inverse[i] = r;
    }
  read_epilogue();
  if (staged != 0u) {
    stage(first_token, tokens);
    workgroup_barrier();
  }

  uvec2 first_here = uvec2(0u);
  for (uint group = gl_WorkGroupID.x * subgroups + subgroup_index; group < groups;
       group += gl_NumWorkGroups.x * subgroups) {
    vec4 part[tile_tokens * 8u];  // by token and virtual lane of the invocation
    for (uint j = 0u; j < virtual_count; ++j) {
      multiply(first_token, tokens, first_group + group, j);
      each_token(t) part[8u * t + j] = lane_sum(t);
    }
    // Lane t finishes token t of the tile; with subgroups of 4 also token 4 + t.
    vec4 kept[2];
    each_token(t) {
      vec4 own[8];
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) own[i] = part[8u * t + i];
      float sum = virtual_sum4(fold_virtual(own));
      vec4 all = vec4(subgroupShuffle(sum, 0u), subgroupShuffle(sum, lane_quarter),
                      subgroupShuffle(sum, 2u * lane_quarter), subgroupShuffle(sum, 3u * lane_quarter));
      if (lane == t % subgroup_size) kept[t / subgroup_size] = all;
    }
    LATER_UNROLLED for (uint k = 0u; k < 2u;
                        ++k) if (k * subgroup_size < tile_tokens && lane + k * subgroup_size < tokens)
        finish_rows(row_of(first_row, lane + k * subgroup_size), group, kept[k]);
    if (keeps_firsts != 0u && lane == 0u) first_here = earlier(first_here, first_of_rows(group, kept[0]));
  }
  leave_first(first_here, true);
}
