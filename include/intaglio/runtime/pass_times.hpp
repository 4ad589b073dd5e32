// SPDX-License-Identifier: MIT
// Device time of a kind of pass for each kernel. One pass now and then runs with a timestamp after each dispatch;
// timestamps cost, on some drivers as much as a dispatch.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "intaglio/kernels/kinds.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/pace.hpp"

namespace intaglio::runtime {

/// Times of dispatches of a pass by kernel.
struct pass_times {
  /// Dispatches of one kernel and their time, summed over the timed passes.
  struct kernel_time {
    std::uint64_t dispatches = 0;
    double nanoseconds = 0;
  };
  std::uint64_t passes = 0, timed = 0;                       ///< passes submitted, and how many of them were timed
  std::array<kernel_time, kernels::kernel_count> kernels{};  ///< by kernels::kernel, of the timed passes

  double nanoseconds() const {
    double out = 0;
    for (const kernel_time& each : kernels) out += each.nanoseconds;
    return out;
  }
  void add(kernels::kernel which, double nanoseconds_taken) {
    kernel_time& its = kernels[static_cast<std::size_t>(which)];
    its.nanoseconds += nanoseconds_taken;
    its.dispatches += 1;
  }
};

/// Decides which passes of a kind are timed, and keeps their times. Without an interval no pass is timed.
class pass_clock {
 public:
  /// @param interval one pass in `interval` is timed  @param first passes before the first timed one
  constexpr pass_clock(std::uint64_t interval = 0, std::uint64_t first = 0)
      : interval_(interval), first_(first), next_(first) {}

  const pass_times& times() const noexcept { return times_; }
  void count(std::uint64_t passes) noexcept { times_.passes += passes; }
  /// Whether the next pass is to be timed: a whole pass must take at most half of the submission's budget.
  bool is_due(const pace& speed, std::uint32_t segments, double budget_ms) const {
    return interval_ != 0 && times_.passes >= next_ && speed.segment_ms() * segments <= budget_ms / 2;
  }
  /// Notes that the next pass is timed.
  void begin() noexcept { next_ = times_.passes + interval_; }
  void add(kernels::kernel which, double nanoseconds) { times_.add(which, nanoseconds); }
  /// Notes that the times of the timed pass were added.
  void end() noexcept { times_.timed += 1; }
  void reset() {
    times_ = {};
    next_ = first_;
  }

 private:
  std::uint64_t interval_, first_, next_;
  pass_times times_{};
};

}  // namespace intaglio::runtime
