// SPDX-License-Identifier: MIT
// Kernel norm_quantize on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

/// The factors of a quantised token beside its int8 values, in the kernels' layout: 8 bytes for each token.
struct factors {
  float inverse_scale = 0;  ///< max|y| / 127, the step of the int8 grid
  std::int32_t sum = 0;     ///< sum of the int8 values
  friend bool operator==(const factors&, const factors&) = default;
};

/// Quantises y to int8 by its absolute maximum; y, output: [width].
inline factors quantize(std::span<const float> y, std::span<std::int8_t> output) {
  float largest = 1e-5f;
  for (const float value : y) largest = std::fmax(largest, std::fabs(value));
  const float scale = 127.0f / largest;
  // Integers have no NaN, so a NaN in y must show in the factor.
  const bool sound = std::none_of(y.begin(), y.end(), [](float value) { return std::isnan(value); });
  factors out{sound ? largest / 127.0f : std::numeric_limits<float>::quiet_NaN(), 0};
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float grid = std::nearbyint(product(y[i], scale));
    // Written so that NaN becomes -128 rather than undefined behaviour.
    output[i] = static_cast<std::int8_t>(grid >= 127.0f ? 127.0f : grid > -128.0f ? grid : -128.0f);
    out.sum += output[i];
  }
  return out;
}

/// Kernel norm_quantize. @param norm_weight empty: y is the input
/// @shape input: [tokens, width]; norm_weight: [width]; output: [tokens, width]; token_factors: [tokens]
inline void norm_quantize(std::span<const float> input, std::span<const float> norm_weight, std::size_t width,
                          float eps, std::span<std::int8_t> output, array_view<factors> token_factors) {
  std::vector<float> y(width);
  for (std::size_t token = 0; token < token_factors.size(); ++token) {
    const auto x = input.subspan(token * width, width);
    if (norm_weight.empty()) {
      const float r = inverse_rms(x, eps);  // says whether all of x are numbers
      for (std::size_t i = 0; i < width; ++i) y[i] = std::isnan(r) ? r : x[i];
    } else {
      rms_norm(x, norm_weight, eps, y);
    }
    token_factors[token] = quantize(y, output.subspan(token * width, width));
  }
}

}  // namespace intaglio::reference
