// SPDX-License-Identifier: MIT
// IEEE binary16 and bfloat16 to and from binary32, round to nearest even, usable in constant expressions.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <bit>
#include <cstdint>

namespace intaglio {

/// Converts the bits of an IEEE half-precision number to f32, without rounding.
constexpr float f32_from_f16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
  return sign ? -magnitude : magnitude;
}

/// Rounds f32 to the nearest f16, ties to even. @return the bits; 65520 and above become infinity
constexpr std::uint16_t f16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7FFFFFFFu;
  const auto sign = static_cast<std::uint32_t>((bits >> 16) & 0x8000u);
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // 65520 and above round to infinity
  if (magnitude < 0x33000001u) return static_cast<std::uint16_t>(sign);             // up to 2^-25 round to zero
  std::uint32_t shift = 13, base = magnitude - 0x38000000u;                         // rebased exponent, 10-bit mantissa
  if (magnitude < 0x38800000u) {                                                    // becomes subnormal
    shift = 126u - (magnitude >> 23);
    base = (magnitude & 0x7FFFFFu) | 0x800000u;
  }
  const std::uint32_t kept = base >> shift, rest = base & ((1u << shift) - 1u), tie = 1u << (shift - 1);
  return static_cast<std::uint16_t>(sign | (kept + (rest > tie || (rest == tie && (kept & 1u)) ? 1u : 0u)));
}

/// Converts the bits of a bf16 number to f32, without rounding.
constexpr float f32_from_bf16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// Rounds f32 to the nearest bf16, ties to even. @return the bits
constexpr std::uint16_t bf16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace intaglio
