// SPDX-License-Identifier: MIT
// The norm over an FFN's features, from the partial results of walk_gate_up: the sum of squares of every four features,
// and the greatest |value * norm weight| of each of its `shares` workgroups, stored in sequence in `totals`. The bits
// are those of norm.glsl. The including shader has `columns`, `shares`, subgroup.glsl and the push constants input_,
// norm_weight, values and totals.
#ifndef INTAGLIO_WALK_NORM
#define INTAGLIO_WALK_NORM

#define quads (columns / 4u)
#define norm_blocks ((columns + 127u) / 128u)
shared float
    eighths[9u * norm_blocks];  // of a block's 32 quads, four each; one word between blocks, so that banks differ
shared float block_sums[norm_blocks];
shared float from_subgroups[workgroup_size / 4u];

// Tested by bits: drivers may assume that no float is infinite or NaN.
#define not_a_number uintBitsToFloat(0x7fc00000u)
bool finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

float inverse_rms(float eps, out float greatest) {
  const uint items = 8u * norm_blocks, turns = (items + workgroup_size - 1u) / workgroup_size;
  uint me = gl_LocalInvocationIndex;
  for (uint turn = 0u; turn < turns; ++turn) {
    uint i = turn * workgroup_size + me, first = i / 8u * 32u + i % 8u;
    vec4 four;
    LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) {
      uint quad = first + 8u * k;
      float square = Floats(totals).at[min(quad, quads - 1u)];
      four[k] = quad < quads ? square : 0.0;
    }
    precise float sum = (four.x + four.z) + (four.y + four.w);
    if (i < items) eighths[i + i / 8u] = sum;
  }
  greatest = 0.0;
  for (uint i = me; i < shares; i += workgroup_size) greatest = max(greatest, Floats(totals).at[quads + i]);
  greatest = subgroup_max(greatest);
  if (subgroups > 1u && lane == 0u) from_subgroups[subgroup_index] = greatest;
  workgroup_barrier();
  for (uint block = me; block < norm_blocks; block += workgroup_size) {
    uint at = 9u * block;
    precise float sum = ((eighths[at] + eighths[at + 4u]) + (eighths[at + 2u] + eighths[at + 6u])) +
                        ((eighths[at + 1u] + eighths[at + 5u]) + (eighths[at + 3u] + eighths[at + 7u]));
    block_sums[block] = sum;
  }
  workgroup_barrier();
  float part[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
    precise float sum = 0.0;
    if (j < virtual_count)
      for (uint first = 0u; first < norm_blocks; first += 32u) {
        uint block = first + virtual_lane + j * virtual_width;
        sum = sum + (block < norm_blocks ? block_sums[min(block, norm_blocks - 1u)] : 0.0);
      }
    part[j] = sum;
  }
  if (subgroups > 1u) {
    for (uint g = lane; g < subgroups; g += subgroup_size) greatest = max(greatest, from_subgroups[g]);
    greatest = subgroup_max(greatest);
  }
  precise float mean = virtual_sum(part) / float(columns) + eps;
  precise float r = 1.0 / sqrt(mean);
  return finite(mean) ? r : not_a_number;
}

// The int8 grid of a token's values: values times `scale`, rounded, are its integers; an integer times `factor` is the
// value.
struct int8_grid {
  float r, scale, factor;
};
int8_grid grid_of(float eps) {
  float greatest, r = inverse_rms(eps, greatest);
  precise float y = greatest * r;
  float m = max(y, 1e-5);
  precise float scale = 127.0 / m, step_ = m / 127.0;
  return int8_grid(r, scale, finite(r) ? step_ : not_a_number);
}

// Integers of features 4 * quad .. 4 * quad + 3.
ivec4 integers(uint quad, int8_grid grid) {
  precise vec4 product = float_quad(input_, quad) * float_quad(norm_weight, quad), y = product * grid.r,
               scaled = y * grid.scale;
  return clamp(ivec4(roundEven(scaled)), -128, 127);
}

// For a trace: stores the numbers by which the down vectors are multiplied.
void keep_values(uint quad, ivec4 q, int8_grid grid) {
  precise vec4 kept = vec4(q) * grid.factor;
  FloatQuads(values).at[quad] = kept;
}

#endif
