// SPDX-License-Identifier: MIT
// How far logits are from those that were expected.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

struct logit_distance {
  double apart = 0, largest = 0;  ///< of two, and of those expected; NaN where one is none
};

/// @param found at least as many as expected
template <class Expected>
logit_distance logits_apart(std::span<const float> found, std::span<const Expected> expected) {
  const auto keep = [](double& most, double x) { most = x > most || std::isnan(x) ? x : most; };
  logit_distance out;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto wanted = static_cast<double>(expected[i]);
    keep(out.apart, std::abs(static_cast<double>(found[i]) - wanted));
    keep(out.largest, std::abs(wanted));
  }
  return out;
}

/// Cosine of the angle between two lists of logits of one length.
inline double logits_cosine(std::span<const float> found, std::span<const float> expected) {
  double both = 0, mine = 0, theirs = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    both += a * b, mine += a * a, theirs += b * b;
  }
  return both / std::sqrt(mine * theirs);
}
