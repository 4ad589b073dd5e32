// SPDX-License-Identifier: MIT
// The normal distribution: the part of it below a number of standard deviations, and the inverse.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cmath>

namespace intaglio::io {

/// The part of a normal distribution that is less than `deviations` above its mean.
inline double normal_part_below(double deviations) { return 0.5 * std::erfc(-deviations / std::sqrt(2.0)); }

/// The inverse of normal_part_below, by bisection.
/// @param part above 0 and below 1
inline double normal_quantile(double part) {
  double low = -9, high = 9;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_part_below(middle) < part ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace intaglio::io
