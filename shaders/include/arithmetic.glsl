// SPDX-License-Identifier: MIT
// exp, log, sine and cosine as in include/intaglio/kernels/arithmetic.hpp: the same expressions, so the same bits.
#ifndef INTAGLIO_ARITHMETIC
#define INTAGLIO_ARITHMETIC

float power_of_two(int n) { return uintBitsToFloat(uint(n + 127) << 23); }

float exp_reduced(float r, float n) {
  precise float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  precise float y = ((p * (r * r) + r) + 1.0) * power_of_two(int(n));
  return y;
}

float canonical_exp(float x) {
  precise float n = roundEven(min(max(x, -87.0), 88.0) * 1.44269504);
  precise float r = (min(max(x, -87.0), 88.0) - n * 0.693359375) - n * -2.12194440e-4;
  return x < -87.0 ? 0.0 : exp_reduced(r, n);
}

float canonical_exp2(float x) {
  precise float n = roundEven(x);
  precise float r = (x - n) * 0.693147181;
  return exp_reduced(r, n);
}

float log_reduced(float x, float e) {
  precise float z = x * x;
  precise float p = 7.0376836292e-2;
  p = p * x + -1.1514610310e-1;
  p = p * x + 1.1676998740e-1;
  p = p * x + -1.2420140846e-1;
  p = p * x + 1.4249322787e-1;
  p = p * x + -1.6668057665e-1;
  p = p * x + 2.0000714765e-1;
  p = p * x + -2.4999993993e-1;
  p = p * x + 3.3333331174e-1;
  precise float y = (p * x) * z;
  y = y + e * -2.12194440e-4;
  y = y + -0.5 * z;
  precise float result = (x + y) + e * 0.693359375;
  return result;
}

float canonical_log(float x) {
  uint bits = floatBitsToUint(x);
  precise float e = float(int(bits >> 23) - 126);
  precise float m = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
  bool low = m < 0.707106781;
  e = low ? e - 1.0 : e;
  m = low ? m + m : m;
  precise float reduced = m - 1.0;
  return log_reduced(reduced, e);
}

// (sine, cosine) of phase / 2^32 of a whole turn.
vec2 of_turn(uint phase) {
  uint quadrant = (phase + 0x20000000u) >> 30;
  int rest = int(phase - (quadrant << 30));
  precise float x = float(rest) * 1.46291807926716e-9;
  precise float z = x * x;
  precise float s = -1.9515295891e-4;
  s = s * z + 8.3321608736e-3;
  s = s * z + -1.6666654611e-1;
  s = (s * z) * x + x;
  precise float c = 2.443315711809948e-5;
  c = c * z + -1.388731625493765e-3;
  c = c * z + 4.166664568298827e-2;
  c = ((c * z) * z + -0.5 * z) + 1.0;
  bool swap = (quadrant & 1u) != 0u;
  float sine = swap ? c : s, cosine = swap ? s : c;
  return vec2((quadrant & 2u) != 0u ? -sine : sine, ((quadrant + 1u) & 2u) != 0u ? -cosine : cosine);
}

uint rope_phase(uint position, float frequency) {
  uint bits = floatBitsToUint(frequency);
  uint s0, s1;
  umulExtended(position, (bits & 0x007fffffu) | 0x00800000u, s1, s0);
  uint shift = 150u - (bits >> 23);
  uint a0, a1, b0, b1, c0, c1, d0, d1, carry, more;
  umulExtended(s0, 0x9391054au, a1, a0);
  umulExtended(s0, 0x28be60dbu, b1, b0);
  umulExtended(s1, 0x9391054au, c1, c0);
  umulExtended(s1, 0x28be60dbu, d1, d0);
  uint word1 = uaddCarry(b0, a1, carry);
  b1 += carry;
  word1 = uaddCarry(word1, c0, carry);
  uint word2 = uaddCarry(d0, b1, more);
  uint word3 = d1 + more;
  word2 = uaddCarry(word2, carry, more);
  word3 += more;
  word2 = uaddCarry(word2, c1, more);
  word3 += more;
  if (shift < 32u) return (word1 >> shift) | (word2 << (32u - shift));
  if (shift == 32u) return word2;
  return (word2 >> (shift - 32u)) | (word3 << (64u - shift));
}

float rope_frequency(uint pair, uint head_dim, float theta) {
  precise float log2_theta = canonical_log(theta) * 1.44269504;
  precise float slope = -log2_theta / float(head_dim);
  precise float exponent = float(2u * pair) * slope;
  return canonical_exp2(exponent);
}

vec2 rope_turn(uint position, uint pair, uint head_dim, float theta) {
  return of_turn(rope_phase(position, rope_frequency(pair, head_dim, theta)));
}

// rope_turn of a frequency in turns per position: units of 2^-64 turn, lower word first.
vec2 rope_from_turns(uint position, uvec2 turns) {
  uint carried, low;
  umulExtended(position, turns.x, carried, low);
  return of_turn(position * turns.y + carried);
}

// float to f16, rounded to nearest even: packHalf2x16 leaves the rounding open.
uint half_from_float(float value) {
  uint bits = floatBitsToUint(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    if (magnitude < 0x33000000u) return sign;
    uint shift = 126u - (magnitude >> 23), mantissa = (magnitude & 0x007fffffu) | 0x00800000u;
    uint kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), middle = 1u << (shift - 1u);
    return sign | (kept + uint(rest > middle || (rest == middle && (kept & 1u) != 0u)));
  }
  uint rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}

uint pack_f16(float low, float high) { return half_from_float(low) | (half_from_float(high) << 16); }

#endif
