// SPDX-License-Identifier: MIT
// Loads for llvmpipe, which makes a loop over the lanes of each, 17 instructions a lane. Only where an address is made
// of constants and push constants alone, outside of all control flow, does it load a word once for all lanes; of
// neighbouring words between which lanes choose by their number its compiler then makes one load of a vector. So what
// uses this has no loop that stays, no `if` around loads, and its place from uniform_number. The including shader has
// subgroup_width.
#ifndef INTAGLIO_STRAIGHT
#define INTAGLIO_STRAIGHT

#define LATER_UNROLLED [[dont_unroll]]  // as in subgroup.glsl

// Lanes beyond a vector repeat the first ones.
const uint vector_width = subgroup_width == 0u ? 4u : subgroup_width < 16u ? subgroup_width : 16u;
uint vector_lane;
void find_lane() { vector_lane = gl_SubgroupInvocationID & (vector_width - 1u); }

// `number`, the same in all invocations and not more than `most`, so that llvmpipe knows the former: what comes from
// push constants at any index is, by the rules of Vulkan. `binary` is the push constant of that type: 0 and 1.
#define uniform_number(number, most, binary, out_)                                                            \
  {                                                                                                           \
    uint number_ = number;                                                                                    \
    out_ = 0u;                                                                                                \
    uint bits_ = uint(findMSB(uint(most)) + 1);                                                               \
    LATER_UNROLLED for (uint bit_ = 0u; bit_ < bits_; ++bit_) out_ |= binary[(number_ >> bit_) & 1u] << bit_; \
  }

// What lies `index` times `bytes` behind an address.
Words behind(Words from, uint index, uint bytes) {
  uint low, high, carried;
  umulExtended(index, bytes, high, low);
  low = uaddCarry(uvec2(from).x, low, carried);
  return Words(uvec2(low, uvec2(from).y + high + carried));
}

// Words at .. at + vector_width - 1, one a lane.
uint words_from(Words from, uint at) {
  uint word = from.at[at];
  LATER_UNROLLED for (uint i = 1u; i < vector_width; ++i) {
    uint other = from.at[at + i];
    word = vector_lane == i ? other : word;
  }
  return word;
}

// What another lane of the vector has.
uint lane_of(uint x, uint from) { return subgroupShuffle(x, from & (vector_width - 1u)); }
// Sums of lanes `apart` from each other.
float over(float x, uint apart) {
  precise float sum = x + uintBitsToFloat(lane_of(floatBitsToUint(x), vector_lane ^ apart));
  return sum;
}

#endif
