// SPDX-License-Identifier: MIT
// The features of a layer whose gates are nearest to a vector, by a search over all of them. A graph (io/hnsw.hpp) must
// be faster than that. Sums have their own order, equal on all machines of one kind; reference/walk.hpp has the order
// of the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/error.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define INTAGLIO_GATE_AVX 1
#else
#define INTAGLIO_GATE_AVX 0
#endif

namespace intaglio::io {
/// A feature and its score for an input.
struct near_feature {
  std::uint32_t feature = 0;
  float score = 0;  ///< gate_f . x
  friend bool operator==(const near_feature&, const near_feature&) = default;
};

namespace gates {

/// Number of separate sums: column c is in sum c % lanes.
inline constexpr std::size_t lanes = 32;
/// The sum of all lanes, by halves: lane i gets lane i + step.
inline float halved(float (&sums)[lanes]) {
  for (std::size_t step = lanes / 2; step != 0; step /= 2)
    for (std::size_t i = 0; i < step; ++i) sums[i] += sums[i + step];
  return sums[0];
}
inline float plain_dot(const float* a, const float* b, std::size_t width) {  ///< dot product, one lane at a time
  float sums[lanes]{};
  std::size_t i = 0;
  for (; i + lanes <= width; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) sums[k] += a[i + k] * b[i + k];
  for (std::size_t k = 0; i + k < width; ++k) sums[k] += a[i + k] * b[i + k];
  return halved(sums);
}
#if INTAGLIO_GATE_AVX
typedef float eight __attribute__((vector_size(32)));  ///< a register of AVX

/// The dot product with AVX. Without fused multiplication eight lanes at once round like one at a time.
[[gnu::target("avx")]] inline float avx_dot(const float* a, const float* b, std::size_t width) {
  eight sum[4]{};
  std::size_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    eight x[4], y[4];
    std::memcpy(x, a + i, sizeof x);
    std::memcpy(y, b + i, sizeof y);
    for (std::size_t k = 0; k < 4; ++k) sum[k] += x[k] * y[k];
  }
  float sums[lanes];
  std::memcpy(sums, sum, sizeof sums);
  for (std::size_t k = 0; i + k < width; ++k) sums[k] += a[i + k] * b[i + k];
  return halved(sums);
}
#endif
using dot_function = float (*)(const float*, const float*, std::size_t);  ///< a dot product of two rows [width]

/// The fastest dot product of this machine.
inline dot_function fastest_dot() {
#if INTAGLIO_GATE_AVX
  static const bool has = __builtin_cpu_supports("avx");
  if (has) return avx_dot;
#endif
  return plain_dot;
}
/// Refuses a query that no gate can be compared with.
/// @throws argument_error for another width than the gates', or a number that is not finite
inline void expect_query(std::span<const float> x, std::size_t width) {
  if (x.size() != width) throw argument_error("query", std::to_string(width) + " values", std::to_string(x.size()));
  for (std::size_t i = 0; i < width; ++i)
    if (!std::isfinite(x[i]))
      throw argument_error("query", "finite numbers",
                           (std::isnan(x[i]) ? "NaN at " : "infinity at ") + std::to_string(i));
}

/// The order of nearness: the larger |score| first, the lower feature where both are equal.
inline bool nearer(const near_feature& a, const near_feature& b) {
  return std::fabs(a.score) != std::fabs(b.score) ? std::fabs(a.score) > std::fabs(b.score) : a.feature < b.feature;
}

}  // namespace gates

/// The `count` features, or all, with the largest |gate_f . x|: the largest first, the lowest first where several are
/// equal.
/// @param gate  [features, width]  @param x  [width]  @throws argument_error for numbers that are not finite, in the
/// query or in a score
inline std::vector<near_feature> nearest_gates(std::span<const float> gate, std::span<const float> x,
                                               std::size_t count) {
  if (x.empty() || gate.size() % x.size() != 0)
    throw argument_error("gates", "vectors of " + std::to_string(x.size()), std::to_string(gate.size()) + " values");
  gates::expect_query(x, x.size());
  const auto dot = gates::fastest_dot();
  std::vector<near_feature> out(gate.size() / x.size());
  for (std::uint32_t f = 0; f < out.size(); ++f) {
    out[f] = {f, dot(gate.data() + f * x.size(), x.data(), x.size())};
    if (std::isnan(out[f].score))
      throw argument_error("gates", "numbers", "NaN as the score of feature " + std::to_string(f));
  }
  count = (std::min)(count, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), gates::nearer);
  out.resize(count);
  return out;
}

}  // namespace intaglio::io
