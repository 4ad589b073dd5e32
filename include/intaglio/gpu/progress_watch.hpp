// SPDX-License-Identifier: MIT
// Tells a device that is slow from one that hangs, for waits that are asked again and again. A GPU hangs where no
// submission ends for a whole turn of waiting. A CPU driver shares its processors with everything else, so it may be
// slow for as long as the process gets any time: it hangs where, turn after turn, no submission ends and the process
// computes nothing.
#pragma once

#include <intaglio/core/compiler.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace intaglio::gpu {

class progress_watch {
 public:
  /// Turns in a row without a sign of life after which a CPU driver hangs. One is not enough: a process that was
  /// stopped finds that its turn is over when it goes on.
  static constexpr std::uint32_t quiet_turns_of_cpu = 6;

  /// @param turn how long one turn of waiting lasts  @param ended submissions that ended so far  @param computed
  /// platform::processor_time()
  progress_watch(bool is_cpu, std::chrono::nanoseconds turn, std::uint64_t ended, std::chrono::nanoseconds computed)
      : is_cpu_(is_cpu), turn_(turn), ended_(ended), computed_(computed) {}

  /// To be asked after each turn. What waiting itself computes, less than a thousandth of a turn, is no sign of life.
  bool hangs(std::uint64_t ended, std::chrono::nanoseconds computed) {
    const auto least = (std::max)(turn_ / 1000, std::chrono::nanoseconds(std::chrono::milliseconds(1)));
    const bool lives = ended != ended_ || (is_cpu_ && computed - computed_ >= least);
    ended_ = ended;
    computed_ = computed;
    quiet_turns_ = lives ? 0 : quiet_turns_ + 1;
    return quiet_turns_ >= (is_cpu_ ? quiet_turns_of_cpu : 1);
  }
  /// How long there has been no sign of life.
  std::chrono::nanoseconds quiet() const { return turn_ * quiet_turns_; }

 private:
  bool is_cpu_;
  std::chrono::nanoseconds turn_;
  std::uint64_t ended_;
  std::chrono::nanoseconds computed_;
  std::uint32_t quiet_turns_ = 0;
};

}  // namespace intaglio::gpu
