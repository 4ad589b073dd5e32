// SPDX-License-Identifier: MIT
// What an FFN's features add to the stream for one token: a workgroup quantises the features' values, lists in shared memory those that are not 0, and
// reads of their down vectors a few words of 16 rows each. Integer sums, so neither the list's order nor who adds what matters.
// variant: walk_down -DWIDE_LOADS=0
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
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint words = 4;
layout(constant_id = 5) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
const bool quantises = true;
#define norm_width columns
#include "norm.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, weight, scales, output_, state, values; };

#include "quantised_input.glsl"

const uint list_size = 2048u;  // kernels::walk_list
shared uint list[list_size];   // feature << 8 | its int8
shared uint listed;
shared int sums[16u * words];

const uint row_words = rows / 16u;
// Entries between two partings of the pairs: 2 * 128 * 64 stays within 16 bits.
const uint round_entries = 64u;

void main() {
  find_place();
  if (state.at[state_count] == 0u) return;
  int activation_sum;
  float factor = quantise_input(activation_sum);
  uint me = gl_LocalInvocationIndex, word = me % words, slice = me / words, slices = workgroup_size / words, first_word = gl_WorkGroupID.x * words;
  for (uint i = me; i < 16u * words; i += workgroup_size) sums[i] = 0;
  if (me == 0u) listed = 0u;
  workgroup_barrier();
  activation_sum = whole_sum(activation_sum);
  if (uvec2(values) != uvec2(0u) && gl_WorkGroupID.x == 0u)
    for (uint quad = me; quad < columns / 4u; quad += workgroup_size) {
      uint four = shared_x[quad / 4u][quad & 3u];
      precise vec4 kept = vec4(bitfieldExtract(ivec4(four, four >> 8, four >> 16, four >> 24), 0, 8)) * factor;
      FloatQuads(values).at[quad] = kept;
    }

  bool works = slice < slices && first_word + word < row_words;
  uint at = min(first_word + word, row_words - 1u);
  int own[16];
  LATER_UNROLLED for (uint c = 0u; c < 16u; ++c) own[c] = 0;
  for (uint begin = 0u; begin < columns; begin += list_size) {
    uint end = min(begin + list_size, columns);
    for (uint quad = begin / 4u + me; quad < end / 4u; quad += workgroup_size) {
      uint four = shared_x[quad / 4u][quad & 3u];
      LATER_UNROLLED for (uint b = 0u; b < 4u; ++b) {
        uint code = (four >> (8u * b)) & 255u;
        if (code != 0u) list[atomicAdd(listed, 1u)] = (4u * quad + b) << 8 | code;
      }
    }
    workgroup_barrier();
    uint count = works ? listed : 0u;
    for (uint start = slice; start < count; start += round_entries * slices) {
      uint both[8];
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) both[i] = 0u;
      uint stop = min(count, start + round_entries * slices);
      for (uint e = start; e < stop; e += slices) {
        uint entry = list[e], codes = weight.at[(entry >> 8) * row_words + at];
        uint value = uint(bitfieldExtract(int(entry), 0, 8));
        // Two codes in a multiplication, those of bytes b and b + 2: signed sums, the upper over the lower.
        LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) both[i] += ((codes >> (2u * i)) & 0x00030003u) * value;
      }
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
        int low = int(both[i] << 16) >> 16, column = int(4u * (i & 3u) + i / 4u);
        own[column] += low;
        own[column + 2] += (int(both[i]) - low) >> 16;
      }
    }
    workgroup_barrier();
    if (me == 0u) listed = 0u;
    workgroup_barrier();
  }
  if (works) LATER_UNROLLED for (uint c = 0u; c < 16u; ++c) atomicAdd(sums[16u * word + c], own[c]);
  workgroup_barrier();

  float scale = Floats(scales).at[0];
  for (uint i = me; i < 16u * words && 16u * first_word + i < rows; i += workgroup_size) {
    uint row = 16u * first_word + i;
    precise float y = float(sums[i] - activation_sum) * (factor * scale);
    precise float sum = Floats(output_).at[row] + y;
    Floats(output_).at[row] = sum;
  }
}
