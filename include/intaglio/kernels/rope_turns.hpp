// SPDX-License-Identifier: MIT
// Rotary embedding by exact fractions of a full turn: a pair of channels is rotated by position * turns modulo 2^64, so
// that no position is too large. A model's table of `turns` is made once, from any frequencies.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>

#include "intaglio/kernels/arithmetic.hpp"

namespace intaglio::kernels {

/// Rotation for one position in units of 2^-64 of a full turn. frequency: radians a position, 0 up to 2 pi (exclusive).
inline std::uint64_t rope_turns(long double frequency) {
  return static_cast<std::uint64_t>(std::floor(std::ldexp(frequency / (2 * std::numbers::pi_v<long double>), 64)));
}

/// Frequency of plain rotary embedding, theta^(-2 pair / head_dim), in radians a position.
inline long double rope_frequency_of(std::uint32_t pair, std::uint32_t head_dim, long double theta) {
  return std::pow(theta, -2.0L * static_cast<long double>(pair) / static_cast<long double>(head_dim));
}

/// Sine and cosine at a position.
inline arithmetic::sine_cosine rope_from_turns(std::uint32_t position, std::uint64_t turns) {
  return arithmetic::of_turn(static_cast<std::uint32_t>((position * turns) >> 32));
}

}  // namespace intaglio::kernels
