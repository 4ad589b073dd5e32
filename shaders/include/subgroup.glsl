// SPDX-License-Identifier: MIT
// Virtual lanes: reductions in the fixed order of docs/kernels.md for any subgroup size (4 to 64). Loops count by
// addition: drivers do not unroll others.
#ifndef INTAGLIO_SUBGROUP
#define INTAGLIO_SUBGROUP

// A hint for loops that the driver shall unroll when it knows the specialization constants; the SPIR-V optimizer would
// make a copy for every subgroup size. The optimizer leaves loops with this hint alone, and tools/embed_shaders inverts
// the hint in the modules that it embeds.
#define LATER_UNROLLED [[dont_unroll]]

uint subgroup_size, lane;
uint virtual_lane;               // of 64 lanes the upper 32 repeat the lower ones
uint virtual_count;              // virtual lanes of an invocation: virtual_lane + j * subgroup_size
uint virtual_width;              // lanes that have virtual lanes
uint lane_quarter;               // a quarter of them
uint subgroups, subgroup_index;  // of the workgroup

// Called first in main: the values are read once, so that compilers see the same value everywhere.
void find_lane() {
  subgroup_size = subgroup_width != 0u ? subgroup_width : gl_SubgroupSize;
  lane = gl_SubgroupInvocationID;
  virtual_lane = lane & 31u;
  virtual_width = min(subgroup_size, 32u);
  virtual_count = 32u / virtual_width;
  lane_quarter = virtual_width >> 2;
  subgroups = subgroup_width != 0u ? (workgroup_size + subgroup_width - 1u) / subgroup_width : gl_NumSubgroups;
  subgroup_index = workgroup_size > subgroup_size ? gl_SubgroupID : 0u;
}

// Waits for the other subgroups of the workgroup. With one subgroup only the order of its memory accesses matters:
// llvmpipe suspends every invocation even for a subgroup's barrier.
#define workgroup_barrier()             \
  if (workgroup_size > subgroup_size) { \
    memoryBarrierBuffer();              \
    barrier();                          \
  } else subgroupMemoryBarrier();

// Folds the virtual lanes of an invocation into one.
float fold_virtual(float partial[8]) {
  precise float s[8] = partial;
  if (virtual_count > 4u) LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) s[j] = s[j] + s[j + 4u];
  if (virtual_count > 2u) LATER_UNROLLED for (uint j = 0u; j < 2u; ++j) s[j] = s[j] + s[j + 2u];
  if (virtual_count > 1u) s[0] = s[0] + s[1];
  return s[0];
}

// Sum over the 32 virtual lanes, in every lane.
float virtual_sum(float partial[8]) {
  precise float sum = fold_virtual(partial);
  LATER_UNROLLED for (uint i = 0u; i < 5u; ++i) if ((16u >> i) < virtual_width) sum =
      sum + subgroupShuffleXor(sum, 16u >> i);
  return sum;
}

// Folds four sums at once.
vec4 fold_virtual(vec4 partial[8]) {
  precise vec4 s[8] = partial;
  if (virtual_count > 4u) LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) s[j] = s[j] + s[j + 4u];
  if (virtual_count > 2u) LATER_UNROLLED for (uint j = 0u; j < 2u; ++j) s[j] = s[j] + s[j + 2u];
  if (virtual_count > 1u) s[0] = s[0] + s[1];
  return s[0];
}

// Four sums over the virtual lanes after fold_virtual. A quarter of the lanes, `lane_quarter` wide, ends with each.
float virtual_sum4(vec4 v) {
  uint q = lane_quarter, h = 2u * q;
  bool upper = (lane & h) != 0u;
  precise vec2 pair = (upper ? v.zw : v.xy) + subgroupShuffleXor(upper ? v.xy : v.zw, h);
  upper = (lane & q) != 0u;
  precise float sum = (upper ? pair.y : pair.x) + subgroupShuffleXor(upper ? pair.x : pair.y, q);
  LATER_UNROLLED for (uint i = 0u; i < 3u; ++i) if ((4u >> i) < q) sum = sum + subgroupShuffleXor(sum, 4u >> i);
  return sum;
}

float subgroup_max(float value) {
  LATER_UNROLLED for (uint i = 0u; i < 6u; ++i) if ((32u >> i) < subgroup_size) value =
      max(value, subgroupShuffleXor(value, 32u >> i));
  return value;
}

int subgroup_sum(int value) {
  LATER_UNROLLED for (uint i = 0u; i < 6u; ++i) if ((32u >> i) < subgroup_size) value +=
      subgroupShuffleXor(value, 32u >> i);
  return value;
}

// Sums of four numbers over all lanes, in every lane: lanes exchange numbers instead of all computing all.
ivec4 subgroup_sum4(ivec4 v) {
  uint h = subgroup_size >> 1, q = subgroup_size >> 2;
  bool upper = (lane & h) != 0u;
  ivec2 pair = (upper ? v.zw : v.xy) + subgroupShuffleXor(upper ? v.xy : v.zw, h);
  upper = (lane & q) != 0u;
  int sum = (upper ? pair.y : pair.x) + subgroupShuffleXor(upper ? pair.x : pair.y, q);
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) if ((8u >> i) < q) sum += subgroupShuffleXor(sum, 8u >> i);
  return ivec4(subgroupShuffle(sum, 0u), subgroupShuffle(sum, q), subgroupShuffle(sum, h), subgroupShuffle(sum, h + q));
}

#endif
