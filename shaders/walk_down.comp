// SPDX-License-Identifier: MIT
// Adds an FFN's features to the stream for one token: a workgroup has a stripe of the rows (x) and a share of the
// features (y), and lists in shared memory the features whose int8 value is not 0. It reads their down vectors four at
// a time, whose codes of a row are multiplied in one dot product. Workgroups of a stripe add their sums in memory; the
// last one to finish adds the total to the stream. Sums are integers, so neither the list's order nor that of the
// workgroups matters.
// variant: walk_down -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: walk_down_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
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
};
#include "walk_norm.glsl"

const uint row_words = rows / 16u, split_quads = (quads + splits - 1u) / splits;
const uint across = words < workgroup_size ? words : workgroup_size;  // invocations with a word of their own
const uint lists =
    workgroup_size / across < 4u ? workgroup_size / across : 4u;  // kernels::walk_down_lists: shares of the list
shared uint list[4u * split_quads];                               // feature << 8 | its int8
shared uint listed;
shared int partial[16u * lists * (words + 1u)];
shared int value_sum;
shared bool comes_last;

// Multiplies codes of four features by their int8 values, the bytes of q, and adds the products to 16 rows; a row's sum
// is then shifted by row_shift().
#if INTEGER_DOT
uint row_shift(uint row) { return row < 4u ? 0u : row < 8u ? 2u : 4u; }
void accumulate(inout int own[16], uvec4 codes, uint q) {
  uvec2 even = (codes.xz & 0x00ff00ffu) | ((codes.yw << 8) & 0xff00ff00u),
        odd = ((codes.xz >> 8) & 0x00ff00ffu) | (codes.yw & 0xff00ff00u);
  uvec4 bytes = uvec4((even.x & 0xffffu) | (even.y << 16), (odd.x & 0xffffu) | (odd.y << 16),
                      (even.x >> 16) | (even.y & 0xffff0000u), (odd.x >> 16) | (odd.y & 0xffff0000u));
  LATER_UNROLLED for (uint b = 0u; b < 4u; ++b) {
    uint v = bytes[b];
    own[b] += dotPacked4x8EXT(int(v & 0x03030303u), int(q));
    own[4u + b] += dotPacked4x8EXT(int(v & 0x0c0c0c0cu), int(q));
    own[8u + b] += dotPacked4x8EXT(int(v & 0x30303030u), int(q));
    own[12u + b] += dotPacked4x8EXT(int((v >> 2) & 0x30303030u), int(q));
  }
}
#else
uint row_shift(uint row) { return 0u; }
// Two codes per multiplication, those of bytes b and b + 2: signed sums, the upper over the lower.
void accumulate(inout int own[16], uvec4 codes, uint q) {
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint both = 0u, row = 4u * (i & 3u) + i / 4u;
    LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) both +=
        ((codes[r] >> (2u * i)) & 0x00030003u) * uint(bitfieldExtract(int(q), int(8u * r), 8));
    int low = int(both << 16) >> 16;
    own[row] += low;
    own[row + 2u] += (int(both) - low) >> 16;
  }
}
#endif

struct four_rows {
  uvec4 codes;
  uint q;
};
four_rows load_rows(uint four, uint word) {
  four_rows out_;
  out_.q = 0u;
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
    uint i = 4u * four + r, entry = list[min(i, listed - 1u)];
    out_.codes[r] = weight.at[(entry >> 8) * row_words + word];
    out_.q |= (i < listed ? entry & 255u : 0u) << (8u * r);
  }
  return out_;
}

void main() {
  find_lane();
  bool wanted = state.at[state_count] != 0u;
  uint me = gl_LocalInvocationIndex, stripe = gl_WorkGroupID.x, split = gl_WorkGroupID.y;
  if (me == 0u) {
    listed = 0u;
    value_sum = 0;
  }
  int8_grid grid = grid_of(eps);
  int own_sum = 0;
  uint first_quad = split * split_quads, own_quads = min(split_quads, quads - min(first_quad, quads));
  for (uint i = me; i < own_quads; i += workgroup_size) {
    uint quad = first_quad + i;
    ivec4 q = integers(quad, grid);
    own_sum += (q.x + q.y) + (q.z + q.w);
    if (uvec2(values) != uvec2(0u) && stripe == 0u && wanted) keep_values(quad, q, grid);
    uint some = uint(q.x != 0) + uint(q.y != 0) + uint(q.z != 0) + uint(q.w != 0), at = 0u;
    if (some != 0u) at = atomicAdd(listed, some);
    LATER_UNROLLED for (uint b = 0u; b < 4u; ++b) if (q[b] != 0) list[at++] =
        (4u * quad + b) << 8 | (uint(q[b]) & 255u);
  }
  if (own_sum != 0) atomicAdd(value_sum, own_sum);
  workgroup_barrier();

  uint share = me / across, fours = (listed + 3u) / 4u, begin = share < lists ? share * fours / lists : 0u,
       end = share < lists ? (share + 1u) * fours / lists : 0u;
  for (uint word = me % across; word < words; word += across) {
    int own[16];
    LATER_UNROLLED for (uint row = 0u; row < 16u; ++row) own[row] = 0;
    uint at = min(stripe * words + word, row_words - 1u);
    four_rows next[2];
    if (begin < end) {
      next[0] = load_rows(begin, at);
      next[1] = load_rows(min(begin + 1u, end - 1u), at);
    }
    for (uint four = begin; four < end; four += 2u) LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
        four_rows now = next[i];
        next[i] = load_rows(min(four + i + 2u, end - 1u), at);
        accumulate(own, now.codes, four + i < end ? now.q : 0u);
      }
    if (share < lists)
      LATER_UNROLLED for (uint row = 0u; row < 16u; ++row) partial[(16u * share + row) * (words + 1u) + word] =
          own[row] >> row_shift(row);
  }
  workgroup_barrier();
  // Behind the sums of a stripe are the sum of the values and a counter.
  Sums sums = Sums(totals);
  uint base = quads + shares + stripe * (16u * words + 2u);
  for (uint i = me; i < 16u * words; i += workgroup_size) {
    int sum = 0;
    LATER_UNROLLED for (uint k = 0u; k < lists; ++k) sum += partial[(16u * k + i / words) * (words + 1u) + i % words];
    if (sum != 0 && wanted) atomicAdd(sums.at[base + i], sum);
  }
  if (me == 0u && wanted) atomicAdd(sums.at[base + 16u * words], value_sum);
  memoryBarrierBuffer();
  barrier();
  if (me == 0u) {
    comes_last = wanted && atomicAdd(sums.at[base + 16u * words + 1u], 1) + 1 == int(splits);
    memoryBarrierBuffer();
  }
  barrier();
  if (!comes_last) return;
  int activation_sum = sums.at[base + 16u * words];
  float scale = Floats(scales).at[0];
  for (uint i = me; i < 16u * words && 16u * stripe * words + i < rows; i += workgroup_size) {
    uint row = 16u * stripe * words + i;
    precise float y = float(sums.at[base + i % 16u * words + i / 16u] - activation_sum) * (grid.factor * scale);
    precise float sum = Floats(output_).at[row] + y;
    Floats(output_).at[row] = sum;
  }
}
