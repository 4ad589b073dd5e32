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
