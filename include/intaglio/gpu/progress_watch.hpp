// SPDX-License-Identifier: MIT
// Distinguishes a slow device from one that hangs, for waits that are repeated in turns. A GPU hangs where no
// submission ends during a whole turn. A CPU driver shares its processors with other work, so it may be slow for a long
// time. It hangs where, turn after turn, no submission ends and the process computes nothing.
#pragma once

#include <intaglio/core/compiler.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace intaglio::gpu {

/// Decides from a counter of finished work whether a device hangs.
class progress_watch {
 public:
  /// The number of turns in a row without progress after which a CPU driver hangs. One is not enough: a process that
  /// was stopped finds its turn over when it continues.
  static constexpr std::uint32_t quiet_turns_of_cpu = 6;

  /// @param turn length of one turn of waiting  @param ended submissions that ended so far  @param computed
  /// platform::processor_time()
  progress_watch(bool is_cpu, std::chrono::nanoseconds turn, std::uint64_t ended, std::chrono::nanoseconds computed)
      : is_cpu_(is_cpu), turn_(turn), ended_(ended), computed_(computed) {}

  /// Whether the device hangs. To be called after each turn. The waiting itself computes less than a thousandth of a
  /// turn, which does not count as progress.
  bool hangs(std::uint64_t ended, std::chrono::nanoseconds computed) {
    const auto least = (std::max)(turn_ / 1000, std::chrono::nanoseconds(std::chrono::milliseconds(1)));
    const bool lives = ended != ended_ || (is_cpu_ && computed - computed_ >= least);
    ended_ = ended;
    computed_ = computed;
    quiet_turns_ = lives ? 0 : quiet_turns_ + 1;
    return quiet_turns_ >= (is_cpu_ ? quiet_turns_of_cpu : 1);
  }
  /// How long there has been no progress.
  std::chrono::nanoseconds quiet() const { return turn_ * quiet_turns_; }

 private:
  bool is_cpu_;
  std::chrono::nanoseconds turn_;
  std::uint64_t ended_;
  std::chrono::nanoseconds computed_;
  std::uint32_t quiet_turns_ = 0;
};

}  // namespace intaglio::gpu
