// SPDX-License-Identifier: MIT
// Kernel ternary_float on the CPU: sums of f32 activations with repacked ternary codes, and the four epilogues of
// ternary_matmul. For the prologue `norm` callers first call reference::rms_norm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/reference/ternary_matmul.hpp"

namespace intaglio::reference {

/// The sum of code * x over the columns of one row, where codes are -1, 0 and +1. Virtual lane v takes tiles v, v + 32,
/// ... in rising order into one accumulator.
inline float ternary_sum(std::span<const std::uint32_t> weight, std::uint32_t columns, std::uint32_t row,
                         std::span<const float> x) {
  std::array<float, virtual_lanes> lanes{};
  for (std::uint32_t tile = 0; tile < columns / kernels::tile_columns; ++tile) {
    const std::uint32_t word = weight[kernels::tile_word(row, std::uint64_t{tile} * kernels::tile_columns, columns)];
    float& sum = lanes[tile % virtual_lanes];
    for (std::uint32_t c = 0; c < kernels::tile_columns; ++c)
      sum += (static_cast<float>((word >> kernels::tile_shift(c)) & 3u) - 1.0f) *
             x[tile * kernels::tile_columns + c];  // an exact product
  }
  return butterfly(lanes);
}

/// Ternary product with f32 inputs, for `tokens` tokens from `position` on.
/// @shape  input: [tokens, columns], normalised where the product has a norm in front; all other shapes as for
/// ternary_matmul
inline void ternary_float(const ternary_matmul_shape& shape, std::span<const float> input,
                          std::span<const std::uint32_t> weight, std::span<const float> scales, std::span<float> output,
                          std::uint32_t position = 0, std::span<std::byte> keys = {},
                          std::span<std::byte> values = {}) {
  std::vector<float> y(shape.rows);
  for (std::size_t token = 0; token < input.size() / shape.columns; ++token) {
    for (std::uint32_t row = 0; row < shape.rows; ++row)
      y[row] = product(ternary_sum(weight, shape.columns, row, input.subspan(token * shape.columns, shape.columns)),
                       scales[scale_of_row(shape, row)]);
    finish(shape, token, y, output, position, keys, values);
  }
}

}  // namespace intaglio::reference
