// SPDX-License-Identifier: MIT
// The language model head for a few tokens at once: dense_matmul with one read of the weights for a tile of up to 8 tokens. A subgroup takes two rows
// at once and normalises activations as it goes, since those of all tokens find no place in shared memory.
// variant: dense_few -DWIDE_LOADS=0
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
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 4096;
layout(constant_id = 3) const uint weight_element = 0;
layout(constant_id = 4) const float eps = 1e-5;
layout(constant_id = 5) const uint tile_tokens = 8;
layout(constant_id = 6) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width columns
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, output_, state; };

#include "octets.glsl"

// Columns 8 * index .. of a token, normalised.
octet activations(uint token, uint index, octet norm, float r) {
  uint at = token * norm_quads + 2u * index;
  precise vec4 low = (float_quad(input_, at) * norm.low) * r, high = (float_quad(input_, at + 1u) * norm.high) * r;
  return octet(low, high);
}

void main() {
  find_place();
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count];
  if (first_token >= count) return;
  uint tokens = min(count - first_token, tile_tokens);
  float inverse[8];
  for (uint t = 0u; t < tokens; ++t) {
    if (t != 0u) workgroup_barrier();  // the sums of the token before have been read
    float largest, r = inverse_rms(input_, (first_token + t) * norm_quads, norm_weight, eps, largest);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i)
      if (i >= t) inverse[i] = r;  // tokens that are not there are the last one again
  }

  uint pairs = (rows + 1u) / 2u, stride = gl_NumWorkGroups.x * subgroups;
  for (uint pair = gl_WorkGroupID.x * subgroups + subgroup_index; pair < pairs; pair += stride) {
    vec4 part[4][8];  // four tokens of a row, by virtual lane of the invocation
    LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
      LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) part[h][j] = vec4(0.0);
      if (j < virtual_count) {
        precise vec4 low[16], high[16];
        LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) low[k] = high[k] = vec4(0.0);
        for (uint block = 0u; block < octets; block += 32u) {
          uint index = block + virtual_lane + j * subgroup_size;
          if (octets % 32u == 0u || index < octets) {
            octet first = load8(2u * pair, index), second = load8(min(2u * pair + 1u, rows - 1u), index);
            octet norm = octet(float_quad(norm_weight, 2u * index), float_quad(norm_weight, 2u * index + 1u));
            LATER_UNROLLED for (uint t = 0u; t < 8u; ++t)
              if (t < tile_tokens) {
                octet y = activations(first_token + min(t, tokens - 1u), index, norm, inverse[t]);
                precise vec4 first_low = first.low * y.low, first_high = first.high * y.high, second_low = second.low * y.low, second_high = second.high * y.high;
                low[t] = low[t] + first_low;
                high[t] = high[t] + first_high;
                low[t + 8u] = low[t + 8u] + second_low;
                high[t + 8u] = high[t + 8u] + second_high;
              }
          }
        }
        LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) part[k / 4u][j][k % 4u] = sum8(low[k], high[k]);
      }
    }
    LATER_UNROLLED for (uint h = 0u; h < 4u; ++h) {
      float sum = virtual_sum4(fold_virtual(part[h]));
      uint row = 2u * pair + h / 2u, t = 4u * (h & 1u) + (lane & 31u) / lane_quarter;
      if ((lane & (lane_quarter - 1u)) == 0u && lane < 32u && row < rows && t < tokens) Floats(output_).at[(first_token + t) * rows + row] = sum;
    }
  }
}
