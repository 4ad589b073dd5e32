// SPDX-License-Identifier: MIT
// Activations of a token, normalised or unchanged, as f16 with a scale per token: the input of matmul_chunk. One
// workgroup per token (y), or with experts per row of their lists.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variant: quantize_f16 -DWIDE_LOADS=0
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint prologue = 0;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint subgroup_width = 0;
layout(constant_id = 5) const uint tiled = 0;  // kernels::f16_order
layout(constant_id = 6) const uint experts_used = 0;
layout(constant_id = 7) const uint own_input = 0;
layout(constant_id = 8) const uint list_tokens = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool normalises = prologue == 3u;
const uint norm_width = normalises ? width : 0u;
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, output_, factors, state, tiles; };

shared uint maxima[workgroup_size / 4u];

// Writes four f16 values, a token's quad of columns.
void store_f16(uint token, uint quad, vec4 y, float scale_) {
  precise vec4 scaled = y * scale_;
  uvec2 pairs = uvec2(pack_f16(scaled.x, scaled.z), pack_f16(scaled.y, scaled.w));
  if (tiled >= 2u) {  // fragments of 16 columns; the first pairs of each eight columns precede the others
    uint fragment = tiled == 2u ? (quad & ~7u) / 4u + (quad & 1u) : (quad & ~31u) / 4u + (quad & 7u),
         quarter = tiled == 2u ? quad / 2u & 3u : quad / 8u & 3u, at = token * (width / 2u) + 8u * fragment + quarter;
    output_.at[at] = pairs.x;
    output_.at[at + 4u] = pairs.y;
    return;
  }
  uint in_tile = token & 7u,
       at = tiled != 0u ? ((token - in_tile) * (width / 8u) + (quad & ~1u) * 4u + in_tile) * 2u + (quad & 1u)
                        : token * (width / 4u) + quad;
  WordPairs(output_).at[at] = pairs;
}

const uint quads = width / 4u;

void main() {
  find_lane();
  uint token = gl_WorkGroupID.y, from = token;
  if (experts_used != 0u) {  // rows of lists of expert_tiles
    uint at = token / list_tokens * (list_tokens + 2u), entry = token % list_tokens;
    if (entry >= tiles.at[at + 1u]) return;
    from = tiles.at[at + 2u + entry];
    if (own_input == 0u) from = from / experts_used;
  } else if (token >= state.at[state_count]) {
    return;
  }
  uint first = from * (width / 4u);
  float r = 1.0, largest = 0.0;
  if (normalises) {
    r = inverse_rms(input_, first, norm_weight, eps, largest);
    precise float y = largest * r;  // rounding is monotone, so it is the rounded product of the largest
    largest = finite(r) ? y : not_a_number;
  } else {
    uint greatest_bits = 0u;  // compared as bits: drivers may assume that no float is infinite or NaN
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
      uvec4 bits = word_quad(input_, first + quad) & 0x7fffffffu;
      greatest_bits = max(greatest_bits, max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
    LATER_UNROLLED for (uint i = 0u; i < 6u; ++i) if ((32u >> i) < subgroup_size) greatest_bits =
        max(greatest_bits, subgroupShuffleXor(greatest_bits, 32u >> i));
    if (subgroups > 1u) {
      if (lane == 0u) maxima[subgroup_index] = greatest_bits;
      barrier();
      for (uint g = 0u; g < subgroups; ++g) greatest_bits = max(greatest_bits, maxima[g]);
    }
    largest = uintBitsToFloat(greatest_bits);
  }
  // Scales the largest to 2^14 to 2^15.
  uint largest_bits = floatBitsToUint(largest) & 0x7fffffffu, exponent = clamp(largest_bits >> 23, 15u, 254u);
  float scale_ = uintBitsToFloat((268u - exponent) << 23);
  if (normalises) {
    for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
      reload_chunk(input_, first, norm_weight, chunk);
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i))
          store_f16(token, norm_quad(chunk, i), normalised(i, r), scale_);
    }
  } else {
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size)
      store_f16(token, quad, float_quad(input_, first + quad), scale_);
  }
  if (gl_LocalInvocationIndex == 0u)
    factors.at[token] = largest_bits < 0x7f800000u ? (exponent - 14u) << 23 : 0x7fc00000u;
}
