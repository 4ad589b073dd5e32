// SPDX-License-Identifier: MIT
// Kernels head_screen and head_rescore on the CPU: proven bounds of all logits, and the exact logits of those that can
// matter.
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

/// With a larger reach below the largest logit the whole head is computed exactly.
inline constexpr float farthest_reach = 8.0f;
/// The lowest rank above 1 that is searched for; a lower one is raised to it.
inline constexpr std::uint32_t fewest_shares = 16;

/// Which logits can matter: those at most `reach` below the logit of `rank`, both before any penalty. rank 0: all of
/// them.
struct screening {
  std::uint32_t rank = 0;
  float reach = 0;
};

/// Logits below the bound cannot matter: they are not the first, are not among the top k, or have weight 0 whatever the
/// filters. Weights are 0 from 25 octaves on, at temperature 1, at which the filters act, and at the temperature of the
/// request. A penalty over 1 raises no logit, and lowers at most `recent` of the logits that rank before.
/// @param recent number of tokens before the one that is drawn  @param groups number of workgroups, each of which knows
/// its largest lower bound
inline screening screening_of(const sampling& s, std::uint32_t recent, std::uint32_t rows, std::uint32_t groups) {
  const std::uint32_t penalised = s.repeat_penalty == 1.0f ? 0 : (std::min)(s.repeat_last_n, recent);
  if (penalised != 0 && !(s.repeat_penalty > 1.0f)) return {};
  screening out{1, 0};
  if (s.temperature >= least_temperature) {
    out.reach = product(17.4f, s.temperature);
    if (s.top_p < 1.0f) out.reach = (std::max)(out.reach, 17.4f);
    else if (s.min_p >= 1e-4f)
      out.reach = (std::min)(out.reach, 0.02f - kernels::arithmetic::log((std::min)(s.min_p, 1.0f)));
    if (!(out.reach <= farthest_reach)) {
      if (s.top_k == 0 || s.top_k >= rows) return {};
      out = {s.top_k, 0};
    }
  }
  if (penalised >= groups || out.rank > groups - penalised) return {};
  out.rank += penalised;
  if (out.rank > 1) out.rank = (std::max)(out.rank, fewest_shares);
  return out.rank <= groups ? out : screening{};
}

/// The smallest of the largest lower bounds of `rank` shares of the workgroups: at least `rank` logits reach it.
inline float least_of_shares(std::span<const float> lowest, std::uint32_t rank) {
  float out = std::numeric_limits<float>::infinity();
  for (std::size_t share = 0; share < rank; ++share) {
    float most = -std::numeric_limits<float>::infinity();
    for (std::size_t i = share; i < lowest.size(); i += rank) most = (std::max)(most, lowest[i]);
    out = (std::min)(out, most);
  }
  return out;
}

/// Bounds of every logit. Their bits are not defined, only lower <= the kernel's logit <= upper. They are infinite
/// where nothing is known.
struct logit_bounds {
  std::vector<float> y;             ///< the normalised activations, [columns]
  std::vector<float> lower, upper;  ///< [rows]
};
/// Bounds of all logits from the rows' codes.
/// @shape input, norm_weight: [columns]; codes: [rows, columns]; scales: [rows] (kernels/row_codes.hpp)
inline logit_bounds head_screen(std::span<const float> input, std::span<const float> norm_weight,
                                std::span<const std::int8_t> codes, std::span<const float> scales, float eps) {
  const std::size_t columns = input.size(), rows = scales.size();
  logit_bounds out;
  out.y.resize(columns);
  rms_norm(input, norm_weight, eps, out.y);
  double magnitude = 0;
  for (const float y : out.y) magnitude += std::abs(static_cast<double>(y));
  // Half a quantisation step for each column, and every floating-point error of the exact logit.
  const double apart = (0.502 + static_cast<double>(columns / 32 + 16) * 1.6e-5) * magnitude;
  const bool usual = std::isfinite(magnitude) && magnitude >= 1e-15 && magnitude <= 1e15;
  for (std::size_t row = 0; row < rows; ++row) {
    double about = 0;
    for (std::size_t c = 0; c < columns; ++c) about += codes[row * columns + c] * static_cast<double>(out.y[c]);
    const bool known = usual && std::isfinite(scales[row]);
    const double scale = scales[row];
    constexpr float infinity = std::numeric_limits<float>::infinity();
    out.lower.push_back(known ? std::nextafter(static_cast<float>(scale * (about - apart)), -infinity) : -infinity);
    out.upper.push_back(known ? std::nextafter(static_cast<float>(scale * (about + apart)), infinity) : infinity);
  }
  return out;
}

/// Replaces bounds that reach `least` by exact logits; logits below it cannot matter.
/// @shape y: [columns]; weight: [rows, columns] of `type`; bounds: [rows]
inline void head_rescore(std::span<const float> y, std::span<const std::byte> weight, kernels::element type,
                         float least, std::span<float> bounds) {
  std::vector<float> w(y.size());
  for (std::size_t row = 0; row < bounds.size(); ++row) {
    if (bounds[row] < least) continue;
    for (std::size_t c = 0; c < y.size(); ++c) w[c] = elements::read(weight, type, row * y.size() + c);
    bounds[row] = dot(w, y);
  }
}

}  // namespace intaglio::reference
