// SPDX-License-Identifier: MIT
// Integer probabilities and random words for the draw, as include/intaglio/reference/sample.hpp has them.
#ifndef INTAGLIO_SAMPLING
#define INTAGLIO_SAMPLING

const float log2_e = 1.44269504;
const uint full_weight = 1u << 24;

uint high_product(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}

// About 2^24 * 2^(-fraction / 2^20) for fraction < 2^20.
uint power(uint fraction) {
  uint x = fraction << 12;
  uint h = 4310560u;
  h = 40133167u - high_product(h, x);
  h = 237977951u - high_product(h, x);
  h = 1031714237u - high_product(h, x);
  h = 2977043459u - high_product(h, x);
  return full_weight - (high_product(h, x) >> 8);
}

// 2^24 * exp2((logit - maximum) * scale).
uint weight_of(float logit, float maximum, float scale) {
  precise float octaves = (logit == maximum ? 0.0 : maximum - logit) * scale;
  uint steps = uint(min(octaves, 31.0) * 1048576.0);
  return power(steps & 0xfffffu) >> (steps >> 20);
}

// Philox 4x32 with 10 rounds.
uvec4 philox(uvec4 c, uvec2 k) {
  for (int i = 0; i < 10; ++i) {
    uint h0, l0, h1, l1;
    umulExtended(0xd2511f53u, c.x, h0, l0);
    umulExtended(0xcd9e8d57u, c.z, h1, l1);
    c = uvec4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
    k += uvec2(0x9e3779b9u, 0xbb67ae85u);
  }
  return c;
}

#endif
