// SPDX-License-Identifier: MIT
// Loads for llvmpipe, which turns each load into a loop over the lanes, 17 instructions per lane. It loads a word once
// for all lanes only if the address consists of constants and push constants, outside of all control flow; if lanes
// choose by their number among neighbouring words, its compiler makes one vector load of them. So code that uses this
// file has no loop that remains, no `if` around loads, and takes its indices from uniform_number. The including shader
// has subgroup_width.
#ifndef INTAGLIO_UNROLLED
#define INTAGLIO_UNROLLED

#define LATER_UNROLLED [[dont_unroll]]  // as in subgroup.glsl

// Lanes beyond a vector repeat the first ones.
const uint vector_width = subgroup_width == 0u ? 4u : subgroup_width < 16u ? subgroup_width : 16u;
uint vector_lane;
void find_lane() { vector_lane = gl_SubgroupInvocationID & (vector_width - 1u); }

// `number`, the same in all invocations and at most `most`, in a form that llvmpipe knows to be uniform: by Vulkan's
// rules, push constants at any index are. `binary` is the push constant of that type: 0 and 1.
#define uniform_number(number, most, binary, out_)                                                            \
  {                                                                                                           \
    uint number_ = number;                                                                                    \
    out_ = 0u;                                                                                                \
    uint bits_ = uint(findMSB(uint(most)) + 1);                                                               \
    LATER_UNROLLED for (uint bit_ = 0u; bit_ < bits_; ++bit_) out_ |= binary[(number_ >> bit_) & 1u] << bit_; \
  }

// The address `index` times `bytes` after an address.
Words at_index(Words from, uint index, uint bytes) {
  uint low, high, carried;
  umulExtended(index, bytes, high, low);
  low = uaddCarry(uvec2(from).x, low, carried);
  return Words(uvec2(low, uvec2(from).y + high + carried));
}

// Words at .. at + vector_width - 1, one per lane.
uint words_from(Words from, uint at) {
  uint word = from.at[at];
  LATER_UNROLLED for (uint i = 1u; i < vector_width; ++i) {
    uint other = from.at[at + i];
    word = vector_lane == i ? other : word;
  }
  return word;
}

// The value of another lane of the vector.
uint lane_of(uint x, uint from) { return subgroupShuffle(x, from & (vector_width - 1u)); }
// Sums of lanes `apart` from each other.
float over(float x, uint apart) {
  precise float sum = x + uintBitsToFloat(lane_of(floatBitsToUint(x), vector_lane ^ apart));
  return sum;
}

#endif
