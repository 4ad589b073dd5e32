// SPDX-License-Identifier: MIT
// How much of a sequence one submission may hold: sequences are recorded as segments, and what segments took decides
// how many go together. Times are the host's, from the later of submission and previous end to the end, so they err on
// the long side.
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

  /// Notes how long a submission of a number of segments took. Slower counts at once, faster by and by, or at once
  /// where more went together than ever before: what a submission costs by itself, and what a driver does at a first
  /// run, weigh on the first ones, which are small.
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
  /// Time of a segment by the last measurement alone.
  double latest_ms() const noexcept { return latest_ms_; }

 private:
  double segment_ms_ = 0, latest_ms_ = 0;
  std::uint32_t largest_ = 0;  ///< longest group that was measured
};

}  // namespace intaglio::runtime
