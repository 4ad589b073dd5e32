// SPDX-License-Identifier: MIT
// Square roots in constant expressions: std::sqrt is not constexpr before C++26.
#pragma once

#include "intaglio/core/compiler.hpp"

namespace intaglio {

/// The root of a finite x above 0, computed in binary64 and rounded once to binary32; 0 for x of 0 or less.
constexpr float square_root(float x) {
  if (!(x > 0)) return 0;
  const double wanted = static_cast<double>(x);
  double root = wanted > 1 ? wanted : 1;
  for (double next = 0.5 * (root + wanted / root); next < root; next = 0.5 * (root + wanted / root))
    root = next;  // the iterates fall until they reach the root
  return static_cast<float>(root);
}

}  // namespace intaglio
