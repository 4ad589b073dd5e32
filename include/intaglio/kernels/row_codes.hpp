// SPDX-License-Identifier: MIT
// Rows of dense weights as int8, for the first step of a screened head (head_screen): a code for each element and a
// scale for each row.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace intaglio::kernels {

/// Quantises a row to codes of -127 .. 127 with |row[i] - scale * codes[i]| <= 0.501 * scale, and |row[i]| <= 127.001 *
/// scale.
/// @return scale; infinity if a value is not finite, or if the row is so small that rounding would break the bound: the
/// codes then bound nothing
/// @shape row, codes: [columns]
inline float row_codes(std::span<const float> row, std::span<std::int8_t> codes) {
  float largest = 0;
  bool finite = true;
  for (const float x : row) {
    largest = (std::max)(largest, std::abs(x));
    finite = finite && std::isfinite(x);
  }
  std::fill(codes.begin(), codes.end(), std::int8_t{0});
  if (largest == 0 && finite) return 0;
  if (!finite || largest < 1e-12f || largest > 1e12f) return std::numeric_limits<float>::infinity();
  const float scale = largest / 127.0f, inverse = 127.0f / largest;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float shifted = row[i] * inverse + (row[i] < 0 ? -0.5f : 0.5f);
    codes[i] = static_cast<std::int8_t>(std::clamp(static_cast<int>(shifted), -127, 127));
  }
  return scale;
}

}  // namespace intaglio::kernels
