// SPDX-License-Identifier: MIT
// Kernels head_screen and head_rescore on the CPU: which logits a pass can do without, proven bounds of all, and the exact ones of the rest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/reference/dense_matmul.hpp"
#include "intaglio/reference/sample.hpp"

namespace intaglio::reference {

/// More than this, in logits, and the head is dense.
inline constexpr float farthest_reach = 8.0f;

/// How far below the largest logit another may lie and still count: a chance of it, whatever the filters, is 0 beyond. Above farthest_reach: all count.
/// @param recent tokens that a penalty looks at
inline float screen_reach(const sampling& s, std::uint32_t recent) {
  constexpr float everything = 3.0e38f;
  if (s.repeat_penalty != 1.0f && std::min(s.repeat_last_n, recent) != 0) return everything;
  if (!(s.temperature >= least_temperature)) return 0;
  float far = product(17.4f, s.temperature);  // weights are 0 from 25 octaves on; the filters act at temperature 1
  if (s.top_p < 1.0f) far = std::max(far, 17.4f);
  else if (s.min_p >= 1e-4f) far = std::min(far, 0.02f - kernels::arithmetic::log(std::min(s.min_p, 1.0f)));
  return far <= farthest_reach ? far : everything;
}

/// Bounds of every logit. Their bits are not fixed, what they promise is: lower <= the kernel's logit <= upper; infinite where nothing is known.
struct logit_bounds {
  std::vector<float> y;             ///< the normalised activations, [columns]
  std::vector<float> lower, upper;  ///< [rows]
};

/// @shape input, norm_weight: [columns]; codes: [rows, columns]; scales: [rows] (kernels/row_codes.hpp)
inline logit_bounds head_screen(std::span<const float> input, std::span<const float> norm_weight, std::span<const std::int8_t> codes, std::span<const float> scales, float eps) {
  const std::size_t columns = input.size(), rows = scales.size();
  logit_bounds out;
  out.y.resize(columns);
  rms_norm(input, norm_weight, eps, out.y);
  double magnitude = 0;
  for (const float y : out.y) magnitude += std::abs(static_cast<double>(y));
  // Half a step a column, and every floating-point error of the exact logit.
  const double apart = (0.502 + static_cast<double>(columns / 32 + 16) * 1.6e-5) * magnitude;
  const bool usual = std::isfinite(magnitude) && magnitude >= 1e-15 && magnitude <= 1e15;
  for (std::size_t row = 0; row < rows; ++row) {
    double about = 0;
    for (std::size_t c = 0; c < columns; ++c) about += codes[row * columns + c] * static_cast<double>(out.y[c]);
    const bool known = usual && std::isfinite(scales[row]);
    const double scale = scales[row];
    constexpr float far = std::numeric_limits<float>::infinity();
    out.lower.push_back(known ? std::nextafter(static_cast<float>(scale * (about - apart)), -far) : -far);
    out.upper.push_back(known ? std::nextafter(static_cast<float>(scale * (about + apart)), far) : far);
  }
  return out;
}

/// Exact logits in the place of the bounds that reach `least`: what lies below cannot be asked for.
/// @shape y: [columns]; weight: [rows, columns] of `type`; bounds: [rows]
inline void head_rescore(std::span<const float> y, std::span<const std::byte> weight, kernels::element type, float least, std::span<float> bounds) {
  std::vector<float> w(y.size());
  for (std::size_t row = 0; row < bounds.size(); ++row) {
    if (bounds[row] < least) continue;
    for (std::size_t c = 0; c < y.size(); ++c) w[c] = elements::read(weight, type, row * y.size() + c);
    bounds[row] = dot(w, y);
  }
}

}  // namespace intaglio::reference
