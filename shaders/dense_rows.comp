// SPDX-License-Identifier: MIT
// The language model head of one token for llvmpipe: rows of dense weights times the output of rms_norm, with the bits
// of dense_matmul. A workgroup of one subgroup computes rows_together rows without a loop (unrolled.glsl).
// variant: dense_rows -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
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
layout(constant_id = 4) const uint rows_together = 8;
layout(constant_id = 5) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "unrolled.glsl"

layout(push_constant, scalar) uniform Push {
  Words input_, weight, output_, state;
  uvec2 binary;
};

const bool halved = weight_element != element_f32;  // a word has two columns of a row, an even and an odd one
const uint block_vectors = (halved ? 128u : 256u) / vector_width;  // of 256 columns, which have one sum each
const uint row_words = halved ? columns / 2u : columns, row_vectors = row_words / vector_width;

// Finite f16 only, as in all weights; llvmpipe's own conversion goes bit by bit (memory.glsl). Its vectors have 4 to 16
// lanes; drivers with other widths may flush f32 below 2^-126 to 0, which small f16 values are here.
float widened(int upper) {
  return subgroup_width == 0u || subgroup_width > 16u
             ? unpackHalf2x16(uint(upper) >> 16).x
             : intBitsToFloat((upper >> 3) & int(0x8fffe000)) * 5.192296858534828e33;
}

float product_of_row(Words row) {
  precise float low[64], high[32];
  LATER_UNROLLED for (uint k = 0u; k < 64u; ++k) low[k] = 0.0;
  LATER_UNROLLED for (uint k = 0u; k < 32u; ++k) high[k] = 0.0;
  LATER_UNROLLED for (uint block = 0u; block < row_vectors; block += block_vectors)
      LATER_UNROLLED for (uint k = 0u; k < block_vectors; ++k) if (block + k < row_vectors) {
    uint at = (block + k) * vector_width, w = words_from(row, at);
    if (halved) {
      uint a = words_from(input_, 2u * at), b = words_from(input_, 2u * at + vector_width), pair = 2u * vector_lane;
      bool upper = vector_lane >= vector_width / 2u;
      uint low_even = lane_of(a, pair), low_odd = lane_of(a, pair + 1u), high_even = lane_of(b, pair),
           high_odd = lane_of(b, pair + 1u);  // by all lanes: an inactive lane must not be read
      uint even = upper ? high_even : low_even, odd = upper ? high_odd : low_odd;
      vec2 both =
          weight_element == element_f16 ? vec2(widened(int(w << 16)), widened(int(w & 0xffff0000u))) : bf16_pair(w);
      precise float product_low = both.x * uintBitsToFloat(even), product_high = both.y * uintBitsToFloat(odd);
      precise float sum_low = low[k] + product_low, sum_high = high[k & 31u] + product_high;
      low[k] = sum_low;
      high[k & 31u] = sum_high;
    } else {
      precise float product = uintBitsToFloat(w) * uintBitsToFloat(words_from(input_, at)), sum = low[k] + product;
      low[k] = sum;
    }
  }
  // Sums of eight neighbours first: columns 1, 2 and 4 apart. A virtual lane has four words of f16, or eight.
  LATER_UNROLLED for (uint k = 0u; k < block_vectors; ++k) {
    precise float sum = halved ? low[k] + high[k & 31u] : low[k];
    sum = over(over(sum, 1u), 2u);
    if (!halved && vector_width > 4u) sum = over(sum, 4u);
    low[k] = sum;
  }
  if (!halved && vector_width == 4u) LATER_UNROLLED for (uint k = 0u; k < 32u; ++k) {
      precise float sum = low[2u * k] + low[2u * k + 1u];
      low[k] = sum;
    }
  // Then virtual lanes 16, 8, 4, 2 and 1 apart; at first they are in different vectors.
  const uint vectors = !halved && vector_width == 4u ? 32u : block_vectors;
  LATER_UNROLLED for (uint i = 0u; i < 5u; ++i)
      LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) if (k < (16u >> i) && 2u * (16u >> i) <= vectors) {
    precise float sum = low[k] + low[k + (16u >> i)];
    low[k] = sum;
  }
  float sum = low[0];
  if (vector_width == 16u) sum = over(sum, 8u);
  if (halved && vector_width >= 8u) sum = over(sum, 4u);
  return sum;
}

void main() {
  find_lane();
  uint group;
  uniform_number(min(gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x, rows / rows_together),
                 rows / rows_together, binary, group);
  float result[2] = float[2](0.0, 0.0);
  LATER_UNROLLED for (uint r = 0u; r < rows_together; ++r) {
    uint row = min(group * rows_together + r, rows - 1u);
    float sum = product_of_row(at_index(weight, row, 4u * row_words));
    uint half_ = vector_width == 4u ? r / 4u : 0u;
    result[half_] = vector_lane == (r & (vector_width - 1u)) ? sum : result[half_];
  }
  uint count = state.at[state_count];
  LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
    uint r = i * vector_width + gl_SubgroupInvocationID, row = group * rows_together + r;
    if (count != 0u && gl_SubgroupInvocationID < vector_width && r < rows_together && row < rows)
      Floats(output_).at[row] = result[i];
  }
}
