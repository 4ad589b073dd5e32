// SPDX-License-Identifier: MIT
// walk_down for CPU drivers: a workgroup has a stripe of the rows. It lists the features whose int8 value is not 0,
// some at a time, and its lanes add up neighbouring rows of their down vectors, 64 bits each: loads take most of the
// time there (docs/performance.md).
// variant: walk_down_cpu -DINTEGER_DOT=0 -DWIDE_LOADS=1
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
layout(constant_id = 5) const uint splits = 1;
layout(constant_id = 6) const uint shares = 1;
layout(constant_id = 7) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Sums { coherent int at[]; };
layout(push_constant, scalar) uniform Push {
  Words input_, norm_weight, weight, scales, output_, state, values, totals;
}
pushed;
Words input_, norm_weight, weight, scales, output_, state, values, totals;
void take_pushed() {
  input_ = pushed.input_;
  norm_weight = pushed.norm_weight;
  weight = pushed.weight;
  scales = pushed.scales;
  output_ = pushed.output_;
  state = pushed.state;
  values = pushed.values;
  totals = pushed.totals;
}
#include "walk_norm.glsl"

const uint row_words = rows / 16u, split_features = 4u * ((quads + splits - 1u) / splits);
const uint lane_features = workgroup_size > 16u ? 2048u / workgroup_size : 128u,
           list_size = lane_features * workgroup_size;  // listed at a time; 2 * 128 * 128 fits in 16 bits
const uint pairs = (words + 1u) / 2u, all_pairs = (pairs + workgroup_size - 1u) / workgroup_size;
const uint lane_pairs = all_pairs < 5u ? all_pairs : 5u;  // pairs of words that a lane adds up at once
shared uint list[list_size + workgroup_size];  // entries feature << 8 | int8, a part for each lane, so that no lane
                                               // waits for another's index
shared uint listed[workgroup_size];
shared ivec4 row_sums[4u * words + 4u];
shared int value_sum;
shared bool comes_last;

// Reads a word of each cache line of a list's entries: prefetchers do not find rows of other features. The words are
// not used; see ternary_product.glsl.
uint words_ahead;
void read_list_ahead(uint from, uint first_word) {
  uint first = from * (lane_features + 1u), count = listed[from];
  for (uint e = gl_LocalInvocationIndex; e < count; e += workgroup_size) {
    uint at = (list[first + e] >> 8) * row_words + first_word;
    LATER_UNROLLED for (uint i = 0u; i < (words + 15u) / 16u; ++i) words_ahead |=
        weight.at[min(at + 16u * i, columns * row_words - 1u)];
  }
}

void main() {
  take_pushed();
  find_lane();
  if (state.at[state_count] == 0u) return;
  int8_grid grid = grid_of(eps);
  uint me = gl_LocalInvocationIndex, stripe = gl_WorkGroupID.x, first_word = stripe * words;
  uint first_feature = min(gl_WorkGroupID.y * split_features, columns),
       end_feature = min(first_feature + split_features, columns);
  for (uint i = me; i < 4u * words + 4u; i += workgroup_size) row_sums[i] = ivec4(0);
  if (me == 0u) value_sum = 0;
  words_ahead = 0u;
  int total = 0;
  for (uint begin = first_feature; begin < end_feature; begin += list_size) {
    uint part_ = me * (lane_features + 1u), list_end = part_, last_quad = min(begin + list_size, end_feature) / 4u;
    for (uint quad = begin / 4u + me; quad < last_quad; quad += workgroup_size) {
      ivec4 q = integers(quad, grid);
      total += (q.x + q.y) + (q.z + q.w);
      LATER_UNROLLED for (uint b = 0u; b < 4u; ++b) {
        list[list_end] = (4u * quad + b) << 8 | (uint(q[b]) & 255u);
        list_end += uint(q[b] != 0);
      }
    }
    // Without a trace the loop has no turns: the code after an `if` always runs, masked.
    for (uint quad = begin / 4u + me; quad < (uvec2(values) != uvec2(0u) && stripe == 0u ? last_quad : 0u);
         quad += workgroup_size)
      keep_values(quad, integers(quad, grid), grid);
    listed[me] = list_end - part_;
    workgroup_barrier();
    read_list_ahead(0u, first_word);
    for (uint step_ = 0u; step_ < pairs; step_ += lane_pairs * workgroup_size) {
      uint at[lane_pairs];
      int own[lane_pairs * 32u];
      LATER_UNROLLED for (uint p = 0u; p < lane_pairs; ++p) at[p] = first_word + 2u * (step_ + p * workgroup_size + me);
      LATER_UNROLLED for (uint c = 0u; c < lane_pairs * 32u; ++c) own[c] = 0;
      for (uint from = 0u; from < workgroup_size; ++from) {
        uint first = from * (lane_features + 1u), count = listed[from];
        if (step_ == 0u && from + 1u < workgroup_size) read_list_ahead(from + 1u, first_word);
        uint both[lane_pairs * 16u];
        LATER_UNROLLED for (uint i = 0u; i < lane_pairs * 16u; ++i) both[i] = 0u;
        for (uint e = first; e < first + count; ++e) {
          uint entry = list[e], row = (entry >> 8) * row_words, value = uint(bitfieldExtract(int(entry), 0, 8));
          LATER_UNROLLED for (uint p = 0u; p < lane_pairs; ++p) {
            uvec2 codes = row_words % 2u == 0u ? word_pair(weight, (row + min(at[p], row_words - 2u)) / 2u)
                                               : uvec2(weight.at[row + min(at[p], row_words - 1u)],
                                                       weight.at[row + min(at[p] + 1u, row_words - 1u)]);
            // Two codes per multiplication, those of bytes b and b + 2: signed sums, the upper over the lower.
            LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
              both[16u * p + i] += ((codes.x >> (2u * i)) & 0x00030003u) * value;
              both[16u * p + 8u + i] += ((codes.y >> (2u * i)) & 0x00030003u) * value;
            }
          }
        }
        LATER_UNROLLED for (uint k = 0u; k < lane_pairs * 2u; ++k) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
          uint v = both[8u * k + i], row = 16u * k + 4u * (i & 3u) + i / 4u;
          int low = int(v << 16) >> 16;
          own[row] += low;
          own[row + 2u] += (int(v) - low) >> 16;
        }
      }
      LATER_UNROLLED for (uint p = 0u; p < lane_pairs; ++p) if (step_ + p * workgroup_size + me < pairs)
          LATER_UNROLLED for (uint c = 0u; c < 8u; ++c) row_sums[4u * (at[p] - first_word) + c] +=
          ivec4(own[32u * p + 4u * c], own[32u * p + 4u * c + 1u], own[32u * p + 4u * c + 2u],
                own[32u * p + 4u * c + 3u]);
    }
    workgroup_barrier();
  }
  atomicAdd(value_sum, total);
  workgroup_barrier();
  total = value_sum;
  if (splits > 1u) {  // as in walk_down
    Sums sums = Sums(totals);
    uint base = quads + shares + stripe * (16u * words + 2u);
    for (uint i = me; i < 16u * words; i += workgroup_size) atomicAdd(sums.at[base + i], row_sums[i / 4u][i & 3u]);
    if (me == 0u) atomicAdd(sums.at[base + 16u * words], total);
    memoryBarrierBuffer();
    barrier();
    if (me == 0u) {
      comes_last = atomicAdd(sums.at[base + 16u * words + 1u], 1) + 1 == int(splits);
      memoryBarrierBuffer();
    }
    barrier();
    if (!comes_last) return;
    total = sums.at[base + 16u * words];
    for (uint i = me; i < 16u * words; i += workgroup_size) row_sums[i / 4u][i & 3u] = sums.at[base + i];
    barrier();
  }
  precise float scale = grid.factor * Floats(scales).at[0];
  for (uint i = me + (words_ahead & gl_WorkGroupID.z); i < 4u * words && 4u * first_word + i < rows / 4u;
       i += workgroup_size) {
    precise vec4 y = vec4(row_sums[i] - total) * scale, stream = float_quad(output_, 4u * first_word + i) + y;
    FloatQuads(output_).at[4u * first_word + i] = stream;
  }
}
