// SPDX-License-Identifier: MIT
// How much of a sequence one submission may hold. Sequences are recorded as segments, and the measured time of segments
// decides how many are submitted together. Times are the device's, or the host's from the later of submission and
// previous end to the end, which err on the long side.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

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
    if (std::exchange(is_bound_, false)) segment_ms_ = 0;
    latest_ms_ = each_of(segments, took_ms);
    note(segments, latest_ms_);
  }
  /// Notes a time that a submission did not exceed, where the time that it took is unknown. Bounds count as times until
  /// the first measured time: they are too long, so no submission exceeds its budget by them. Then they count only
  /// where they are shorter.
  void observe_at_most(std::uint32_t segments, double bound_ms) {
    if (segments == 0 || !(bound_ms >= 0)) return;
    const double each = each_of(segments, bound_ms);
    if (segment_ms_ <= 0) is_bound_ = true;
    if (!is_bound_ && each >= segment_ms_) return;
    note(segments, each);
  }

  /// Milliseconds of one segment, 0 before the first time was noted.
  double segment_ms() const noexcept { return segment_ms_; }
  /// Time of a segment in the last measurement.
  double latest_ms() const noexcept { return latest_ms_; }

 private:
  static double each_of(std::uint32_t segments, double ms) { return (std::max)(ms / segments, 1e-6); }
  void note(std::uint32_t segments, double each) {
    segment_ms_ =
        segment_ms_ <= 0 || each > segment_ms_ || segments > largest_ ? each : 0.75 * segment_ms_ + 0.25 * each;
    largest_ = (std::max)(largest_, (std::min)(segments, 500'000u));
  }

  double segment_ms_ = 0, latest_ms_ = 0;
  std::uint32_t largest_ = 0;  ///< largest group that was noted
  bool is_bound_ = false;      ///< segment_ms_ has only bounds
};

}  // namespace intaglio::runtime
