// SPDX-License-Identifier: MIT
// Integer probabilities and random words for the draw, identical to include/intaglio/reference/sample.hpp.
#ifndef INTAGLIO_SAMPLING
#define INTAGLIO_SAMPLING

const float log2_e = 1.44269504;
const uint full_power = 1u << 24;

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
  return full_power - (high_product(h, x) >> 8);
}

// The number of octaves between the largest weight and the smallest.
const uint most_octaves = 24u;

// The binary logarithm of a weight, without a unit.
float exponent_of(float logit, float scale) {
  precise float e = logit * scale;
  e = clamp(e, -3.402823466e38, 3.402823466e38);
  return abs(e) < 1e-30 ? 0.0 : e;  // below this devices may flush to 0
}
// 2^exponent as (high, low) with 44 bits; `octave` is the largest exponent rounded up. Not for minus infinity.
uvec2 weight_of(float logit, float octave, float scale) {
  precise float e = exponent_of(logit, scale), up = ceil(e), below = octave - up, fraction = up - e;
  if (!(below <= float(most_octaves))) return uvec2(0u);
  uint w = power(min(uint(fraction * 1048576.0), 0xfffffu)) >> 4, shift = most_octaves - uint(below);
  return uvec2(shift == 0u ? 0u : w >> (32u - shift), w << shift);
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
