// SPDX-License-Identifier: MIT
// Kernels walk_select, walk_up, walk_sum and walk_trace on the CPU. For weights of f32, f16 or bf16 they choose the
// features of an FFN for one token, compute their values and add what they write. walk_trace reports, for any FFN, the
// features that added most.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "intaglio/reference/walk.hpp"

namespace intaglio::reference {

/// Kernel walk_select. @shape scores: [features]; choice: [count, 2], feature and its score's bits, features rising
inline void walk_select(std::span<const float> scores, std::span<std::uint32_t> choice) {
  // Compared by the bits of the magnitude, as in the kernel: a NaN is larger than any number.
  std::vector<std::uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto size = [&](std::uint32_t f) { return std::bit_cast<std::uint32_t>(scores[f]) & 0x7FFFFFFFu; };
  const auto after = order.begin() + static_cast<std::ptrdiff_t>(choice.size() / 2);
  std::partial_sort(order.begin(), after, order.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
  std::sort(order.begin(), after);
  for (std::size_t i = 0; i < choice.size() / 2; ++i)
    choice[2 * i] = order[i], choice[2 * i + 1] = std::bit_cast<std::uint32_t>(scores[order[i]]);
}

/// Elements [first, first + count) of dense weights.
inline std::vector<float> weight_values(std::span<const std::byte> bytes, kernels::element type, std::size_t first,
                                        std::size_t count) {
  const std::size_t size = elements::size_bytes(type);
  const auto part = bytes.subspan(first * size, count * size);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (type == kernels::element::f32) {
      std::memcpy(&out[i], part.data() + 4 * i, 4);
      continue;
    }
    std::uint16_t bits;
    std::memcpy(&bits, part.data() + 2 * i, 2);
    out[i] = type == kernels::element::f16 ? f32_from_f16(bits) : f32_from_bf16(bits);
  }
  return out;
}

/// Kernel walk_up. @shape x: [columns], normalised; up: [features, columns]; choice: [count, 2]; output: [count]
inline void walk_up(std::span<const float> x, std::span<const std::byte> up, kernels::element type,
                    shader::activation_function act, std::span<const std::uint32_t> choice, std::span<float> output) {
  for (std::size_t i = 0; i < output.size(); ++i)
    output[i] = evaluate(*act, std::bit_cast<float>(choice[2 * i + 1]),
                         dot(weight_values(up, type, choice[2 * i] * x.size(), x.size()), x));
}

/// Kernel walk_trace for a layer of one token.
/// @shape values: [columns]; scores: [columns], by values; choice: [columns, 2], or none where features are 0, 1, ...;
/// norms: [features];
///        trace: trace_words(count), of which the first two words are the caller's
inline void walk_trace(std::span<const float> values, std::span<const float> scores,
                       std::span<const std::uint32_t> choice, std::span<const float> norms, std::uint32_t count,
                       std::span<std::uint32_t> trace) {
  const auto feature = [&](std::size_t i) { return choice.empty() ? static_cast<std::uint32_t>(i) : choice[2 * i]; };
  std::vector<float> sizes(values.size());
  double square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sizes[i] = product(values[i], norms[feature(i)]);
    square += static_cast<double>(sizes[i]) * static_cast<double>(sizes[i]);
  }
  std::vector<std::uint32_t> largest(std::size_t{2} * count);
  walk_select(sizes, largest);
  trace[2] = std::bit_cast<std::uint32_t>(static_cast<float>(std::sqrt(square)));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t at = largest[2 * i];
    trace[3 + 3 * i] = feature(at);
    trace[4 + 3 * i] = choice.empty() ? std::bit_cast<std::uint32_t>(scores[at]) : choice[2 * at + 1];
    trace[5 + 3 * i] = largest[2 * i + 1];
  }
}

/// Kernel walk_sum.
/// @shape values: [count]; choice: [count, 2], or none where features are 0, 1, ...; down: [features, output.size()]
inline void walk_sum(std::span<const float> values, std::span<const std::uint32_t> choice,
                     std::span<const std::byte> down, kernels::element type, bool adds, std::span<float> output,
                     std::size_t splits = 1) {
  const std::size_t rows = output.size() / splits;
  std::vector<std::vector<float>> slot_count(feature_slots, std::vector<float>(rows));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto row = weight_values(down, type, (choice.empty() ? i : choice[2 * i]) * rows, rows);
    for (std::size_t c = 0; c < row.size(); ++c) slot_count[i % feature_slots][c] += product(values[i], row[c]);
  }
  for (std::size_t step = feature_slots / 2; step >= splits; step /= 2)
    for (std::size_t s = 0; s < step; ++s)
      for (std::size_t c = 0; c < rows; ++c) slot_count[s][c] += slot_count[s + step][c];
  for (std::size_t i = 0; i < output.size(); ++i)
    output[i] = adds ? output[i] + slot_count[i / rows][i % rows] : slot_count[i / rows][i % rows];
}

}  // namespace intaglio::reference
