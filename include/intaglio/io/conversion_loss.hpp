// SPDX-License-Identifier: MIT
// The effect of a change of codec on the values: largest and root mean square difference.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace intaglio::io {

/// Differences of values before and after a conversion.
struct conversion_loss {
  std::uint64_t values = 0;
  double largest = 0;        ///< of |after - before|
  double squares = 0;        ///< sum of (after - before)^2
  double value_squares = 0;  ///< sum of before^2

  /// Root mean square of the differences.
  double rms() const { return values == 0 ? 0 : std::sqrt(squares / static_cast<double>(values)); }
  /// Root mean square of the differences, divided by the root mean square of the values.
  double relative() const { return value_squares == 0 ? 0 : std::sqrt(squares / value_squares); }

  /// @param before, after: of one length
  void add(std::span<const float> before, std::span<const float> after) {
    std::array<double, 4> off{}, own{};
    float most = 0.f;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const float apart = after[i] - before[i];
      most = (std::max)(most, std::fabs(apart));
      off[i % 4] += static_cast<double>(apart) * apart;
      own[i % 4] += static_cast<double>(before[i]) * before[i];
    }
    add({before.size(), most, (off[0] + off[1]) + (off[2] + off[3]), (own[0] + own[1]) + (own[2] + own[3])});
  }
  void add(const conversion_loss& other) {
    values += other.values;
    largest = (std::max)(largest, other.largest);
    squares += other.squares;
    value_squares += other.value_squares;
  }
};

}  // namespace intaglio::io
