// SPDX-License-Identifier: MIT
// Kernel ternary_matmul on the CPU: integer products of repacked codes with quantised tokens, and the four epilogues.
// For the prologue norm_quantize callers first call reference::norm_quantize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/ternary_layout.hpp"
#include "intaglio/reference/activation.hpp"
#include "intaglio/reference/canonical.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::reference {

/// The specialization constants that change results.
struct ternary_matmul_shape {
  std::uint32_t columns = 0, rows = 0;  ///< rows of the merged matrix
  kernels::epilogue epilogue = kernels::epilogue::store;
  std::uint32_t head_dim = 0, q_size = 0, kv_size = 0, context = 0;  ///< rope_cache
  float rope_theta = 10'000.f;                                       ///< rope_cache
  kernels::element cache_element = kernels::element::f16;            ///< rope_cache
  shader::activation_function gate{};                                ///< gated
};

/// The sum of code * q over the columns of one row, where codes are -1, 0 and +1. It is exact.
inline std::int32_t ternary_dot(std::span<const std::uint32_t> weight, std::uint32_t columns, std::uint32_t row,
                                std::span<const std::int8_t> q) {
  std::int32_t sum = 0;
  for (std::uint32_t tile = 0; tile < columns / kernels::tile_columns; ++tile) {
    const std::uint32_t word = weight[kernels::tile_word(row, std::uint64_t{tile} * kernels::tile_columns, columns)];
    for (std::uint32_t c = 0; c < kernels::tile_columns; ++c)
      sum +=
          (static_cast<std::int32_t>((word >> kernels::tile_shift(c)) & 3u) - 1) * q[tile * kernels::tile_columns + c];
  }
  return sum;
}

/// The index of the scale of a row of the merged matrix.
inline std::size_t scale_of_row(const ternary_matmul_shape& shape, std::uint32_t row) {
  if (shape.epilogue == kernels::epilogue::gated) return row % 2;
  if (shape.epilogue == kernels::epilogue::rope_cache)
    return row < shape.q_size ? 0 : row < shape.q_size + shape.kv_size ? 1 : 2;
  return 0;
}

/// The epilogue for one token: y [rows] are its scaled sums; the other parameters are as for ternary_matmul.
inline void finish(const ternary_matmul_shape& shape, std::size_t token, std::span<const float> y,
                   std::span<float> output, std::uint32_t position, std::span<std::byte> keys,
                   std::span<std::byte> values) {
  using kernels::epilogue;
  if (shape.epilogue == epilogue::store)
    for (std::size_t row = 0; row < shape.rows; ++row) output[token * shape.rows + row] = y[row];
  if (shape.epilogue == epilogue::add)
    for (std::size_t row = 0; row < shape.rows; ++row) output[token * shape.rows + row] += y[row];
  if (shape.epilogue == epilogue::gated)
    for (std::size_t row = 0; row < shape.rows; row += 2)
      output[(token * shape.rows + row) / 2] = evaluate(*shape.gate, y[row], y[row + 1]);
  if (shape.epilogue != epilogue::rope_cache) return;

  const std::uint32_t half = shape.head_dim / 2, token_position = position + static_cast<std::uint32_t>(token);
  for (std::uint32_t row = 0; row < shape.rows;
       row += 2) {  // y[row], y[row + 1]: channels pair, pair + half of one head
    const auto tensor = scale_of_row(shape, row);
    const std::uint32_t row_of_tensor = row - (tensor > 0 ? shape.q_size : 0) - (tensor > 1 ? shape.kv_size : 0);
    const std::uint32_t head = row_of_tensor / shape.head_dim, pair = row_of_tensor % shape.head_dim / 2;
    float first = y[row], second = y[row + 1];
    if (tensor < 2) {
      const auto [sine, cosine] = kernels::arithmetic::rope(token_position, pair, shape.head_dim, shape.rope_theta);
      first = product(y[row], cosine) - product(y[row + 1], sine);
      second = product(y[row + 1], cosine) + product(y[row], sine);
    }
    if (tensor == 0) {
      const std::size_t at = token * shape.q_size + std::size_t{head} * shape.head_dim + pair;
      output[at] = first;
      output[at + half] = second;
    } else if (token_position < shape.context) {
      elements cache(tensor == 1 ? keys : values, shape.cache_element);
      const auto index = tensor == 1 ? kernels::key_cache_index : kernels::value_cache_index;
      cache.store(index(head, token_position, pair, shape.head_dim, shape.context), first);
      cache.store(index(head, token_position, pair + half, shape.head_dim, shape.context), second);
    }
  }
}

/// Kernel ternary_matmul. One pass of one token for each of token_factors; the first token is at `position`.
/// @shape  input: [tokens, columns]; weight: tiles of [rows, columns] in the epilogue's row order; scales: 1, {q, k, v}
/// or {gate, up}
/// @shape  output: [tokens, rows] for store and add (which adds to it), [tokens, q_size] for rope_cache, [tokens, rows
/// / 2] for gated
/// @shape  keys, values: a layer's cache of cache_element (kernels/cache_layout.hpp), rope_cache only; positions at or
/// past context are dropped
inline void ternary_matmul(const ternary_matmul_shape& shape, std::span<const std::int8_t> input,
                           array_view<const factors> token_factors, std::span<const std::uint32_t> weight,
                           std::span<const float> scales, std::span<float> output, std::uint32_t position = 0,
                           std::span<std::byte> keys = {}, std::span<std::byte> values = {}) {
  std::vector<float> y(shape.rows);
  for (std::size_t token = 0; token < token_factors.size(); ++token) {
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      const std::int32_t sum =
          ternary_dot(weight, shape.columns, row, input.subspan(token * shape.columns, shape.columns));
      y[row] = product(static_cast<float>(sum),
                       product(token_factors[token].inverse_scale, scales[scale_of_row(shape, row)]));
    }
    finish(shape, token, y, output, position, keys, values);
  }
}

}  // namespace intaglio::reference
