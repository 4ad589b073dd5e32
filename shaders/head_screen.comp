// SPDX-License-Identifier: MIT
// The first pass of the screened head (docs/kernels.md, "Screened head"): rows as int8 times the normalised activations
// as 15-bit integers give every logit an upper bound and the largest logit a lower one, for half of the bytes. Also
// writes the normalised activations, for the rows that are computed exactly.
// variant: head_screen -DWIDE_LOADS=0 -DINTEGER_DOT=1
// variant: head_screen_portable -DWIDE_LOADS=0 -DINTEGER_DOT=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
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
layout(constant_id = 2) const uint rows = 4096;
layout(constant_id = 3) const float eps = 1e-5;
layout(constant_id = 4) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#define norm_width columns
#include "norm.glsl"
#include "screen.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, codes, scales, bounds, y, lowest, state; };

const uint tiles = columns / 16u;
// y = step * (256 * high + low), rounded; one word per quad of columns.
shared uvec4 high_y[tiles], low_y[tiles];
shared float magnitudes[workgroup_size / 4u], lowest_of[workgroup_size / 4u];

int dot4(uint a, uint b) {
#if INTEGER_DOT
  return dotPacked4x8EXT(int(a), int(b));
#else
  int sum = 0;
  for (int i = 0; i < 32; i += 8) sum += bitfieldExtract(int(a), i, 8) * bitfieldExtract(int(b), i, 8);
  return sum;
#endif
}

float float_sum(float value) {
  for (uint d = 1u; d < subgroup_size; d <<= 1) value += subgroupShuffleXor(value, d);
  return value;
}

void main() {
  find_lane();
  if (state.at[state_count] == 0u) return;
  bool screens = screening_of(state, gl_NumWorkGroups.x).rank != 0u;
  if (!screens && gl_WorkGroupID.x != 0u) return;
  float largest, r = inverse_rms(input_, 0u, norm_weight, eps, largest);
  float most = largest * r, step_ = most / 32512.0, inverse_step = 32512.0 / max(most, 1e-30), magnitude = 0.0;
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(input_, 0u, norm_weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i)) {
      vec4 value = normalised(i, r);
      uint quad = norm_quad(chunk, i);
      if (gl_WorkGroupID.x == 0u) FloatQuads(y).at[quad] = value;
      magnitude += (abs(value.x) + abs(value.y)) + (abs(value.z) + abs(value.w));
      ivec4 q = clamp(ivec4(roundEven(value * inverse_step)), -32512, 32512), upper = (q + 128) >> 8;
      high_y[quad / 4u][quad & 3u] = packed(upper);
      low_y[quad / 4u][quad & 3u] = packed(q - upper * 256);
    }
  }
  magnitude = float_sum(lane < 32u ? magnitude : 0.0);
  if (lane == 0u) magnitudes[subgroup_index] = magnitude;
  workgroup_barrier();
  if (!screens) return;
  magnitude = 0.0;
  for (uint g = 0u; g < subgroups; ++g) magnitude += magnitudes[g];
  // Bound of the distance between the exact logit and this one, in steps of a row's codes: half a step per column, the
  // rounding of y, and all floating-point errors, those of the exact logit included, several times over. An infinite or
  // NaN result may mean anything.
  float rounding = float(columns / 32u + 16u) * 1.6e-5;
  float apart = (0.502 + rounding) * magnitude + float(columns) * 0.0022 * most;
  bool usual = finite(magnitude) && magnitude >= 1e-15 && magnitude <= 1e15;

  float lower = uintBitsToFloat(0xff800000u);
  uint groups = (rows + 3u) / 4u, stride = gl_NumWorkGroups.x * gl_NumSubgroups;
  for (uint group = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; group < groups; group += stride) {
    ivec4 high = ivec4(0), low = ivec4(0);
    uint row = min(4u * group + (lane & 31u) / lane_quarter, rows - 1u);
    float scale = Floats(scales).at[row];
    for (uint block = 0u; block < tiles; block += virtual_width) {
      uint tile = block + virtual_lane;
      if (tiles % virtual_width == 0u || tile < tiles) {
        uvec4 a = high_y[tile], b = low_y[tile];
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) {
          uvec4 w = word_quad(codes, min(4u * group + k, rows - 1u) * tiles + tile);
          high[k] += (dot4(w.x, a.x) + dot4(w.y, a.y)) + (dot4(w.z, a.z) + dot4(w.w, a.w));
          low[k] += (dot4(w.x, b.x) + dot4(w.y, b.y)) + (dot4(w.z, b.z) + dot4(w.w, b.w));
        }
      }
    }
    float about = virtual_sum4(vec4(high) * 256.0 + vec4(low)) * (scale * step_), error = scale * apart;
    if ((lane & (lane_quarter - 1u)) == 0u && lane < 32u && 4u * group + lane / lane_quarter < rows) {
      float above = about + error, below = about - error;
      bool known = usual && finite(above) && finite(below);
      Words(bounds).at[row] = known ? floatBitsToUint(above) : 0x7f800000u;
      if (known) lower = max(lower, below);
    }
  }
  lower = subgroup_max(lower);
  if (lane == 0u) lowest_of[subgroup_index] = lower;
  workgroup_barrier();
  if (gl_LocalInvocationIndex == 0u) {
    for (uint g = 1u; g < subgroups; ++g) lower = max(lower, lowest_of[g]);
    Floats(lowest).at[gl_WorkGroupID.x] = lower;
  }
}
