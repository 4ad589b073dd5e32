// SPDX-License-Identifier: MIT
// The order of tokens by their logits (docs/kernels.md, "Sample"): a sortable key, and the first token of a workgroup.
#ifndef INTAGLIO_FIRST_TOKEN
#define INTAGLIO_FIRST_TOKEN

// Larger for larger logits, equal for equal logits; NaN is largest.
uint key_of(float l) {
  uint bits = floatBitsToUint(l);
  bits = bits == 0x80000000u ? 0u : bits;
  uint key = bits ^ (uint(int(bits) >> 31) | 0x80000000u);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : key;
}

// Operands are (key, ~id): the first token in the order is the greatest.
bool before(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }
// No branch: drivers make the shuffles after a branch slow.
uvec2 earlier(uvec2 a, uvec2 b) {
  uint y = a.x > b.x ? a.y : a.x == b.x ? max(a.y, b.y) : b.y;
  return uvec2(max(a.x, b.x), y);
}

#ifndef RANKED_INVOCATIONS  // invocations of a workgroup that find its first token
#define RANKED_INVOCATIONS workgroup_size
#endif
shared uvec2 first_of_subgroup[RANKED_INVOCATIONS / 4u];

uvec2 first_of(uvec2 own) {
  for (uint d = 1u; d < subgroup_size; d <<= 1) { own = earlier(own, subgroupShuffleXor(own, d)); }
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) first_of_subgroup[gl_SubgroupID] = own;
    barrier();
    for (uint g = 0u; g < subgroups; ++g) own = earlier(own, first_of_subgroup[g]);
    barrier();
  }
  return own;
}

#endif
