// SPDX-License-Identifier: MIT
// Kernels dense_matmul and dense_batch, the language model head, on the CPU.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

/// Computes logits[token, row] = sum over columns of weight[row, column] * y[token, column].
/// @shape y: [tokens, columns]; weight: [rows, columns] of `type`; output: [tokens, rows]
inline void dense_batch(std::span<const float> y, std::span<const std::byte> weight, kernels::element type,
                        std::size_t columns, std::size_t rows, std::span<float> output) {
  const std::size_t tokens = output.size() / rows;
  std::vector<float> w(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < columns; ++c) w[c] = elements::read(weight, type, row * columns + c);
    for (std::size_t token = 0; token < tokens; ++token)
      output[token * rows + row] = dot(w, y.subspan(token * columns, columns));
  }
}

/// Dense product of y = rms_norm(input) * norm_weight.
/// @shape input: [tokens, columns]; norm_weight: [columns]; weight: [rows, columns] of `type`; output: [tokens, rows]
inline void dense_matmul(std::span<const float> input, std::span<const float> norm_weight,
                         std::span<const std::byte> weight, kernels::element type, std::size_t columns,
                         std::size_t rows, float eps, std::span<float> output) {
  const std::size_t tokens = output.size() / rows;
  std::vector<float> y(tokens * columns);
  for (std::size_t token = 0; token < tokens; ++token)
    rms_norm(input.subspan(token * columns, columns), norm_weight, eps, std::span(y).subspan(token * columns, columns));
  dense_batch(y, weight, type, columns, rows, output);
}

}  // namespace intaglio::reference
