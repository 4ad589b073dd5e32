// SPDX-License-Identifier: MIT
// The language model head: rows of dense weights times the normalised activations of a token (y). A subgroup takes four rows at once.
// variant: dense_matmul -DWIDE_LOADS=0
// variant: dense_matmul_cpu -DWIDE_LOADS=1
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
layout(constant_id = 5) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width columns
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, output_, state; };

const uint octets = columns / 8u;
shared vec4 shared_y[columns / 4u];

struct octet { vec4 low, high; };

octet load8(uint row, uint index) {
  uint at = row * octets + index;
  if (weight_element == element_f32) return octet(float_quad(weight, 2u * at), float_quad(weight, 2u * at + 1u));
  uvec4 words = word_quad(weight, at);
  if (weight_element == element_f16) return octet(vec4(halves(words.x), halves(words.y)), vec4(halves(words.z), halves(words.w)));
  return octet(vec4(brain_halves(words.x), brain_halves(words.y)), vec4(brain_halves(words.z), brain_halves(words.w)));
}

// Sum of the eight accumulators: neighbours first.
float sum8(vec4 low, vec4 high) {
  precise float sum = ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
  return sum;
}

void main() {
  find_place();
  uint token = gl_WorkGroupID.y;
  if (token >= state.at[state_count]) return;
  uint first = token * norm_quads;
  float largest, r = inverse_rms(input_, first, norm_weight, eps, largest);
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, first, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i)
      if (owns_quad(chunk, i)) shared_y[norm_quad(chunk, i)] = normalised(i, r);
  }
  workgroup_barrier();

  uint groups = (rows + 3u) / 4u, stride = gl_NumWorkGroups.x * gl_NumSubgroups;
  for (uint group = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; group < groups; group += stride) {
    vec4 part[8];
    LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
      part[j] = vec4(0.0);
      if (j < virtual_count) {
        precise vec4 low[4], high[4];
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) low[k] = high[k] = vec4(0.0);
        for (uint block = 0u; block < octets; block += 32u) {
          uint index = block + virtual_lane + j * subgroup_size;
          if (octets % 32u == 0u || index < octets) {
            vec4 y_low = shared_y[2u * index], y_high = shared_y[2u * index + 1u];
            LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) {
              octet w = load8(min(4u * group + k, rows - 1u), index);
              precise vec4 product_low = w.low * y_low, product_high = w.high * y_high;
              low[k] = low[k] + product_low;
              high[k] = high[k] + product_high;
            }
          }
        }
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) part[j][k] = sum8(low[k], high[k]);
      }
    }
    float sum = virtual_sum4(fold_virtual(part));
    uint row = 4u * group + (lane & 31u) / lane_quarter;
    if ((lane & (lane_quarter - 1u)) == 0u && lane < 32u && row < rows) Floats(output_).at[token * rows + row] = sum;
  }
}
