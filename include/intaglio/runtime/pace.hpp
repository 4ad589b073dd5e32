// SPDX-License-Identifier: MIT
// How much of a sequence one submission may hold. Sequences are recorded as segments, and the measured time of segments
// decides how many are submitted together. Times are the host's, from the later of submission and previous end to the
// end, so they err on the long side.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>

namespace intaglio::runtime {

/// Measured time of the segments of one sequence.
class pace {
 public:
  /// Segments that fit into `budget_ms`, at least 1. Unmeasured sequences start with one and double, so no guess can
  /// overrun far.
  std::uint32_t allowed(double budget_ms) const {
    if (segment_ms_ <= 0) return 1;
    const double fit = budget_ms / segment_ms_;
    const std::uint32_t bounded = fit < 1 ? 1u : fit > 1e6 ? 1'000'000u : static_cast<std::uint32_t>(fit);
    return (std::min)(bounded, (std::max)(1u, largest_ * 2));
  }

  /// Notes the time of a submission of a number of segments. A longer time counts at once. A shorter time counts
  /// gradually, or at once where more segments were submitted together than ever before: the fixed cost of a
  /// submission, and a driver's work at a first run, dominate the first submissions, which are small.
  void observe(std::uint32_t segments, double took_ms) {
    if (segments == 0 || !(took_ms >= 0)) return;
    const double each = (std::max)(took_ms / segments, 1e-6);
    segment_ms_ =
        segment_ms_ <= 0 || each > segment_ms_ || segments > largest_ ? each : 0.75 * segment_ms_ + 0.25 * each;
    latest_ms_ = each;
    largest_ = (std::max)(largest_, (std::min)(segments, 500'000u));
  }

  /// Milliseconds of one segment, 0 before the first measurement.
  double segment_ms() const noexcept { return segment_ms_; }
  /// Time of a segment in the last measurement.
  double latest_ms() const noexcept { return latest_ms_; }

 private:
  double segment_ms_ = 0, latest_ms_ = 0;
  std::uint32_t largest_ = 0;  ///< largest group that was measured
};

}  // namespace intaglio::runtime
