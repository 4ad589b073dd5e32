// SPDX-License-Identifier: MIT
// Kernels walk_gate_up and walk_down on the CPU: an FFN's features one by one; those that add nothing are not read. For
// the prologue norm_quantize callers first call reference::norm_quantize.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/feature_layout.hpp"
#include "intaglio/reference/ternary_matmul.hpp"

namespace intaglio::reference {

/// The sum of code * q over a feature's vector. It is exact.
inline std::int32_t feature_dot(std::span<const std::uint32_t> words, std::size_t feature,
                                std::span<const std::int8_t> q) {
  std::int32_t sum = 0;
  for (std::size_t c = 0; c < q.size(); ++c)
    sum += (static_cast<std::int32_t>(kernels::feature_code(words, feature, c, q.size())) - 1) * q[c];
  return sum;
}

/// Kernel walk_gate_up for output.size() features, a multiple of 4.
/// @shape q: [columns]; gate: tiles of [features, columns]; up: feature rows; scales: of gate and up; gates: empty, or
/// as output
/// @return the number of up vectors that were read
inline std::size_t walk_gate_up(std::span<const std::int8_t> q, const factors& factor,
                                std::span<const std::uint32_t> gate, std::span<const std::uint32_t> up,
                                std::span<const float> scales, std::span<float> output, std::span<float> gates = {}) {
  std::size_t read = 0;
  const auto columns = static_cast<std::uint32_t>(q.size());
  for (std::uint32_t i = 0; i < output.size(); ++i) {
    const float g =
        product(static_cast<float>(ternary_dot(gate, columns, i, q)), product(factor.inverse_scale, scales[0]));
    output[i] = 0;
    if (!gates.empty()) gates[i] = g;
    if (g <= 0) continue;  // a NaN is not skipped
    ++read;
    const float u = product(static_cast<float>(feature_dot(up, i, q)), product(factor.inverse_scale, scales[1]));
    output[i] = product(product(g, g), u);
  }
  return read;
}

/// The totals that walk_gate_up writes for walk_down. Here the first of `shares` workgroups has all features; on the
/// device any workgroup may have a feature.
/// @shape values, norm: [features]; result: kernels::walk_total_words(features, shares, 0) words
inline std::vector<float> walk_totals(std::span<const float> values, std::span<const float> norm, std::size_t shares) {
  std::vector<float> out(values.size() / 4 + shares);
  float& largest = out[values.size() / 4];
  for (std::size_t quad = 0; quad < values.size() / 4; ++quad) {
    const std::span<const float> v = values.subspan(4 * quad, 4);
    out[quad] = (product(v[0], v[0]) + product(v[1], v[1])) + (product(v[2], v[2]) + product(v[3], v[3]));
    for (std::size_t i = 0; i < 4; ++i) largest = (std::max)(largest, std::abs(product(v[i], norm[4 * quad + i])));
  }
  return out;
}

/// Kernel walk_down: adds the features whose q is not 0 to output.
/// @shape q: [features]; down: feature rows [features, output.size()]; scales: 1
/// @return the number of down vectors that were read
inline std::size_t walk_down(std::span<const std::int8_t> q, const factors& factor, std::span<const std::uint32_t> down,
                             std::span<const float> scales, std::span<float> output) {
  std::size_t read = 0;
  std::vector<std::int32_t> sums(output.size());
  for (std::size_t f = 0; f < q.size(); ++f) {
    if (q[f] == 0) continue;
    ++read;
    for (std::size_t row = 0; row < sums.size(); ++row)
      sums[row] += (static_cast<std::int32_t>(kernels::feature_code(down, f, row, sums.size())) - 1) * q[f];
  }
  for (std::size_t row = 0; row < sums.size(); ++row)
    output[row] += product(static_cast<float>(sums[row]), product(factor.inverse_scale, scales[0]));
  return read;
}

}  // namespace intaglio::reference
