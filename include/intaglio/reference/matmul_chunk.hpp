// SPDX-License-Identifier: MIT
// Kernels quantize_f16 and matmul_chunk on the CPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

/// The activations of a token as matmul_chunk multiplies them: f16 bits, column c of each four at kernels::f16_index,
/// and the factor that reverses their scaling.
struct f16_token {
  std::vector<std::uint16_t> bits;
  float factor = 0;
};

/// The index of a column in the output of kernel quantize_f16.
constexpr std::uint32_t f16_index(std::uint32_t column) {
  return (column & ~3u) | (column & 1u) << 1 | (column >> 1 & 1u);
}

/// The index of element `index` of a token in the tiled order: each eight tokens are [width / 8, 8, 8].
constexpr std::size_t tiled_index(std::size_t token, std::size_t index, std::size_t width) {
  return (token & ~std::size_t{7}) * width + (index & ~std::size_t{7}) * 8 + (token & 7) * 8 + (index & 7);
}
/// The index of an element in any of the orders.
constexpr std::size_t ordered_index(kernels::f16_order order, std::size_t token, std::size_t index, std::size_t width) {
  using kernels::f16_order;
  if (order == f16_order::tiles) return tiled_index(token, index, width);
  return token * width + (order == f16_order::rows ? index : kernels::fragment_index(order, index));
}
/// The bits of tokens in the tiled order, filled up with zeros.
inline std::vector<std::uint16_t> tiled_f16(array_view<const f16_token> tokens, std::size_t width) {
  std::vector<std::uint16_t> out((tokens.size() + 7) / 8 * 8 * width);
  for (std::size_t t = 0; t < tokens.size(); ++t)
    for (std::size_t index = 0; index < width; ++index) out[tiled_index(t, index, width)] = tokens[t].bits[index];
  return out;
}

/// The bits of tokens in one of the orders; tiles are filled up with zeros.
inline std::vector<std::uint16_t> ordered_f16(kernels::f16_order order, array_view<const f16_token> tokens,
                                              std::size_t width) {
  if (order == kernels::f16_order::tiles) return tiled_f16(tokens, width);
  std::vector<std::uint16_t> out(tokens.size() * width);
  for (std::size_t t = 0; t < tokens.size(); ++t)
    for (std::size_t index = 0; index < width; ++index)
      out[ordered_index(order, t, index, width)] = tokens[t].bits[index];
  return out;
}

/// Kernel quantize_f16 for one token. @shape x: [columns], normalised where the product has a norm in front
inline f16_token quantize_f16(std::span<const float> x) {
  f16_token out;
  std::uint32_t greatest = 0;
  for (const float each : x) greatest = (std::max)(greatest, std::bit_cast<std::uint32_t>(each) & 0x7fffffffu);
  const std::uint32_t exponent = std::clamp(greatest >> 23, 15u, 254u);
  const float scale = std::bit_cast<float>((268u - exponent) << 23);
  out.factor =
      greatest < 0x7f800000u ? std::bit_cast<float>((exponent - 14u) << 23) : std::numeric_limits<float>::quiet_NaN();
  out.bits.resize(x.size());
  for (std::uint32_t c = 0; c < x.size(); ++c) out.bits[f16_index(c)] = f16_from_f32(product(x[c], scale));
  return out;
}

/// Product of f16 matrices. Its sums differ from those of reference::matmul: a weight is the f16 nearest to its f32
/// value, products are added to one f32 in rising order of columns, starting from 0, and the token's factor is applied
/// last.
inline void matmul_chunk(const matmul_shape& shape, array_view<const f16_token> input,
                         std::span<const std::byte> weight, std::span<float> output, std::uint32_t position = 0,
                         std::span<std::byte> keys = {}, std::span<std::byte> values = {},
                         std::span<const std::uint64_t> rope = {}) {
  std::vector<float> w(std::size_t{shape.rows} * shape.columns), x(shape.columns), y(shape.rows);
  for (std::uint32_t row = 0; row < shape.rows; ++row)
    for (std::uint32_t c = 0; c < shape.columns; ++c)
      w[std::size_t{row} * shape.columns + c] =
          f32_from_f16(f16_from_f32(weight_at(shape.codec, weight, shape.columns, row, c)));
  for (std::size_t token = 0; token < input.size(); ++token) {
    for (std::uint32_t c = 0; c < shape.columns; ++c) x[c] = f32_from_f16(input[token].bits[f16_index(c)]);
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      float sum = 0;
      for (std::uint32_t c = 0; c < shape.columns; ++c) sum += product(w[std::size_t{row} * shape.columns + c], x[c]);
      y[row] = product(sum, input[token].factor);
    }
    finish_product(shape, token, y, output, position, keys, values, rope);
  }
}

}  // namespace intaglio::reference
