// SPDX-License-Identifier: MIT
// Tokens' activations in the form that matmul_batch multiplies, with or without a norm first: blocks of 32 columns in
// 24 bits with a common scale (docs/kernels.md, "Product of coded weights"). With a norm one workgroup per token (y),
// else any number (x); four neighbouring invocations have a block.
// variant: fixed -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint prologue = 0;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint subgroup_width = 0;
layout(constant_id = 5) const uint rows_per_token = 1;
layout(constant_id = 6) const uint tiled = 0;  // the order that matmul_batch by matrices reads
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool normalises = prologue == 3u;
const uint norm_width = normalises ? width : 0u;
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, state; };

const uint blocks = width / 32u, octets = width / 8u;

void main() {
  find_lane();
  uint token = gl_WorkGroupID.y, first = token * (width / 4u);
  bool wanted = token / rows_per_token < state.at[state_count];
  if (subgroup_width < 32u && !wanted)
    return;  // GPUs: after a return the driver diverges lanes, and everything waits for the count
  float largest, r = 1.0;
  if (normalises) r = inverse_rms(input_, first, norm_weight, eps, largest);
  for (uint begin = gl_WorkGroupID.x * workgroup_size; begin < octets; begin += gl_NumWorkGroups.x * workgroup_size) {
    uint own = begin + gl_LocalInvocationIndex, octet = own < octets ? own : octets - 4u + (own & 3u),
         block = octet >> 2;
    precise vec4 y[2];
    uint greatest_bits = 0u;
    [[unroll]] for (uint e = 0u; e < 2u; ++e) {
      y[e] = float_quad(input_, first + 2u * octet + e);
      if (normalises) y[e] = (y[e] * float_quad(norm_weight, 2u * octet + e)) * r;
      uvec4 bits = floatBitsToUint(y[e]) & 0x7fffffffu;
      greatest_bits = max(greatest_bits, max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
    greatest_bits = max(greatest_bits, subgroupShuffleXor(greatest_bits, 1u));
    greatest_bits = max(greatest_bits, subgroupShuffleXor(greatest_bits, 2u));
    uint exponent = clamp(greatest_bits >> 23, 23u, 254u);
    float factor = uintBitsToFloat((276u - exponent) << 23);
    ivec2 sums = ivec2(0);
    uvec2 upper_words, middle_words, lower_words;
    [[unroll]] for (uint e = 0u; e < 2u; ++e) {
      precise vec4 scaled = y[e] * factor;
      ivec4 q = clamp(ivec4(roundEven(scaled)), -8388608, 8388607), upper = q >> 16, lower = q & 0xffff;
      sums += ivec2(sum_of(upper), sum_of(lower));
      upper_words[e] = packed(upper);
      middle_words[e] = packed(lower >> 8);
      lower_words[e] = packed(lower);
    }
    sums += subgroupShuffleXor(sums, 1u);
    sums += subgroupShuffleXor(sums, 2u);
    // All blocks' first parts, then their second parts: neighbours read neighbours. Tiled: for eight tokens a part of a
    // block.
    uint in_tile = token & 7u, of_tile = (token - in_tile) * 7u * blocks, plane = tiled != 0u ? 32u : 4u * blocks;
    uint at = tiled != 0u ? 0u : token * 7u * blocks + block;
    uint pair = tiled != 0u ? 2u * of_tile + 96u * block + 4u * in_tile + (octet & 3u)
                            : 2u * (at + (octet >> 1 & 1u) * blocks) + (octet & 1u);
    if (wanted && own < octets) {
      WordPairs(output_).at[pair] = upper_words;
      uint turned = tiled != 0u ? 0x7f7f7f7fu : 0u;  // bytes are stored as 127 minus an unsigned byte
      WordPairs(output_).at[pair + plane] = middle_words ^ turned;
      WordPairs(output_).at[pair + 2u * plane] = lower_words ^ turned;
      uint scale_ = greatest_bits < 0x7f800000u ? (exponent - 22u) << 23 : floatBitsToUint(not_a_number);
      if ((octet & 3u) == 0u) {
        if (tiled != 0u) {
          uint rest = 4u * of_tile + 192u * blocks + 16u * block + in_tile;
          precise float whole = float(sums.x) * 65536.0 + float(sums.y);
          output_.at[rest] = scale_;
          Floats(output_).at[rest + 8u] = whole;
        } else {
          WordQuads(output_).at[at + 6u * blocks] = uvec4(scale_, uint(sums.x), uint(sums.y), 0u);
        }
      }
    }
  }
}
