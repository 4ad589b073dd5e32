// SPDX-License-Identifier: MIT
// exp, log, sine and cosine as the kernels compute them: polynomials of rounded products and sums, so that every device
// and the CPU give the same bits. shaders/include/arithmetic.glsl has the same steps. Coefficients: Cephes library
// (Moshier), single precision.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "intaglio/core/unfused.hpp"

namespace intaglio::kernels::arithmetic {

/// The product a * b rounded to binary32, with any flags.
inline float product(float a, float b) { return rounded(a * b); }

/// The power 2^n for n of -126 .. 127.
inline float power_of_two(std::int32_t n) { return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23); }

/// The product e^r * 2^n for |r| up to about 0.35.
inline float exp_reduced(float r, float n) {
  float p = 1.9875691500e-4f;
  p = product(p, r) + 1.3981999507e-3f;
  p = product(p, r) + 8.3334519073e-3f;
  p = product(p, r) + 4.1665795894e-2f;
  p = product(p, r) + 1.6666665459e-1f;
  p = product(p, r) + 5.0000001201e-1f;
  return product((product(p, product(r, r)) + r) + 1.0f, power_of_two(static_cast<std::int32_t>(n)));
}

/// The exponential e^x; 0 for x below -87; x above 88 is clamped to 88.
inline float exp(float x) {
  if (x < -87.0f) return 0.0f;
  if (x > 88.0f) x = 88.0f;
  const float n = std::nearbyint(product(x, 1.44269504f));
  const float r = (x - product(n, 0.693359375f)) - product(n, -2.12194440e-4f);
  return exp_reduced(r, n);
}

/// The power 2^x for x of -126 .. 127.
inline float exp2(float x) {
  const float n = std::nearbyint(x);
  return exp_reduced(product(x - n, 0.693147181f), n);
}

/// log(1 + x) + e * log(2) for 1 + x of sqrt(1/2) .. sqrt(2).
inline float log_reduced(float x, float e) {
  const float z = product(x, x);
  float p = 7.0376836292e-2f;
  p = product(p, x) + -1.1514610310e-1f;
  p = product(p, x) + 1.1676998740e-1f;
  p = product(p, x) + -1.2420140846e-1f;
  p = product(p, x) + 1.4249322787e-1f;
  p = product(p, x) + -1.6668057665e-1f;
  p = product(p, x) + 2.0000714765e-1f;
  p = product(p, x) + -2.4999993993e-1f;
  p = product(p, x) + 3.3333331174e-1f;
  float y = product(product(p, x), z);
  y = y + product(e, -2.12194440e-4f);
  y = y + product(-0.5f, z);
  return (x + y) + product(e, 0.693359375f);
}

/// log(x) for normal positive x.
inline float log(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  float e = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 126);
  float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // 0.5 .. 1
  if (m < 0.707106781f) {
    e = e - 1.0f;
    m = m + m;
  }
  return log_reduced(m - 1.0f, e);
}

/// The sine and the cosine of one angle.
struct sine_cosine {
  float sine = 0, cosine = 1;
};

/// Sine and cosine of the angle phase / 2^32 of a full turn.
inline sine_cosine of_turn(std::uint32_t phase) {
  const std::uint32_t quadrant = (phase + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(phase - (quadrant << 30));    // within an eighth of a turn either way
  const float x = product(static_cast<float>(rest), 1.46291807926716e-9f);  // 2 pi / 2^32
  const float z = product(x, x);
  float s = -1.9515295891e-4f;
  s = product(s, z) + 8.3321608736e-3f;
  s = product(s, z) + -1.6666654611e-1f;
  s = product(product(s, z), x) + x;
  float c = 2.443315711809948e-5f;
  c = product(c, z) + -1.388731625493765e-3f;
  c = product(c, z) + 4.166664568298827e-2f;
  c = (product(product(c, z), z) + product(-0.5f, z)) + 1.0f;
  const bool swap = (quadrant & 1u) != 0;
  const float sine = swap ? c : s, cosine = swap ? s : c;
  return {(quadrant & 2u) != 0 ? -sine : sine, ((quadrant + 1u) & 2u) != 0 ? -cosine : cosine};
}

/// The angle position * frequency as a fraction of a full turn, in units of 2^-32. frequency: radians a position, 2^-31
/// .. 1; position: under 2^24. The computation is integer throughout: position * mantissa * (2^64 / 2 pi), of which the
/// 32 bits below the whole turns are kept.
inline std::uint32_t rope_phase(std::uint32_t position, float frequency) {
  const auto bits = std::bit_cast<std::uint32_t>(frequency);
  const std::uint64_t steps = std::uint64_t{position} * ((bits & 0x007fffffu) | 0x00800000u);
  const std::uint32_t shift = 150u - (bits >> 23);  // frequency = mantissa * 2^-shift
  constexpr std::uint64_t turn_high = 0x28be60dbu, turn_low = 0x9391054au;
  const std::uint64_t s0 = steps & 0xffffffffu, s1 = steps >> 32;
  const std::uint64_t w0 = s0 * turn_low;
  const std::uint64_t w1 = s0 * turn_high + (w0 >> 32);
  const std::uint64_t w2 = s1 * turn_low + (w1 & 0xffffffffu);
  const std::uint64_t w3 = s1 * turn_high + (w1 >> 32) + (w2 >> 32);
  // Product words, low to high: w0, w2, w3 low, w3 high. Wanted: 32 bits from bit shift + 32 on; shift is 23 .. 54.
  const std::uint32_t word1 = static_cast<std::uint32_t>(w2), word2 = static_cast<std::uint32_t>(w3),
                      word3 = static_cast<std::uint32_t>(w3 >> 32);
  return shift < 32    ? (word1 >> shift) | (word2 << (32 - shift))
         : shift == 32 ? word2
                       : (word2 >> (shift - 32)) | (word3 << (64 - shift));
}

/// Frequency of pair i of head_dim / 2: theta^(-2i / head_dim).
inline float rope_frequency(std::uint32_t pair, std::uint32_t head_dim, float theta) {
  const float log2_theta = product(log(theta), 1.44269504f);
  return exp2(product(static_cast<float>(2 * pair), -log2_theta / static_cast<float>(head_dim)));
}

/// Sine and cosine for a pair of channels at a position.
inline sine_cosine rope(std::uint32_t position, std::uint32_t pair, std::uint32_t head_dim, float theta) {
  return of_turn(rope_phase(position, rope_frequency(pair, head_dim, theta)));
}

}  // namespace intaglio::kernels::arithmetic
