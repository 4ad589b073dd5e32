// SPDX-License-Identifier: MIT
// Converts rows of f16 to f32 and back, with F16C where the machine has it; the bits equal the results of
// core/float16.hpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intaglio/core/float16.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#define INTAGLIO_F16C 1
#else
#define INTAGLIO_F16C 0
#endif

namespace intaglio::io {

namespace f16_rows {

/// Without branches: the multiplication puts the exponent right, of subnormal numbers too.
inline float widen(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7FFFu) << 13;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t bits = (half & 0x7C00u) == 0x7C00u ? magnitude | 0x7F800000u : finite;
  return std::bit_cast<float>(bits | ((half & 0x8000u) << 16));
}

#if INTAGLIO_F16C
typedef float eight_floats __attribute__((vector_size(32)));  ///< a register of AVX
typedef short eight_f16 __attribute__((vector_size(16)));     ///< eight f16 as their bits

/// AVX and F16C, with an operating system that keeps their registers.
inline bool has_f16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
  }();
  return has;
}
[[gnu::target("avx,f16c")]] inline std::size_t widen_eights(const std::uint8_t* from, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    eight_f16 halves;
    std::memcpy(&halves, from + 2 * i, 16);
    const eight_f16 unusual = (halves & 0x7C00) == 0x7C00;
    std::uint64_t lanes[2];
    std::memcpy(lanes, &unusual, 16);
    if ((lanes[0] | lanes[1]) != 0) {  // the instruction would make signalling NaNs quiet
      for (std::size_t k = 0; k < 8; ++k) out[i + k] = widen(static_cast<std::uint16_t>(halves[k]));
      continue;
    }
    const eight_floats values = __builtin_ia32_vcvtph2ps256(halves);
    std::memcpy(out + i, &values, 32);
  }
  return i;
}
[[gnu::target("avx,f16c")]] inline std::size_t narrow_eights(const float* from, std::uint8_t* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    eight_floats values;
    std::memcpy(&values, from + i, 32);
    const eight_f16 halves = __builtin_ia32_vcvtps2ph256(values, 0);  // to nearest, ties to even
    std::memcpy(out + 2 * i, &halves, 16);
  }
  return i;
}
#endif

}  // namespace f16_rows

/// `count` values from 2 * count bytes of any alignment.
inline void f32_from_f16_row(const std::uint8_t* from, float* out, std::size_t count) {
  std::size_t i = 0;
#if INTAGLIO_F16C
  if (f16_rows::has_f16c()) i = f16_rows::widen_eights(from, out, count);
#endif
  for (; i < count; ++i) {
    std::uint16_t half;
    std::memcpy(&half, from + 2 * i, 2);
    out[i] = f16_rows::widen(half);
  }
}
/// Writes `count` values as f16: 2 * count bytes, of any alignment.
inline void f16_from_f32_row(const float* from, std::uint8_t* out, std::size_t count) {
  std::size_t i = 0;
#if INTAGLIO_F16C
  if (f16_rows::has_f16c()) i = f16_rows::narrow_eights(from, out, count);
#endif
  for (; i < count; ++i) {
    const std::uint16_t half = f16_from_f32(from[i]);
    std::memcpy(out + 2 * i, &half, 2);
  }
}

}  // namespace intaglio::io
