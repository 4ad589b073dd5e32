// SPDX-License-Identifier: MIT
// The device's own time of one submission: a command buffer with a timestamp in front of its commands, and one after.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "intaglio/gpu/recorder.hpp"

namespace intaglio::runtime {

/// Two command buffers that are recorded once and enclose the commands of a submission. They serve one submission at a
/// time. Empty on a device without timestamps.
class submission_stamps {
 public:
  /// @error out_of_memory, device_lost
  [[gnu::cold]] explicit submission_stamps(const gpu::device& on) {
    if (on.limits().timestamp_bits == 0 || !(on.limits().timestamp_period_ns > 0)) return;
    for (stamp& each : stamps_) {
      each.point = gpu::timestamps(on, 1);
      each.commands = gpu::recorder(on, "time of a submission", &each.point).stamp().finish();
    }
  }

  bool empty() const noexcept { return first() == nullptr; }
  VkCommandBuffer first() const noexcept { return stamps_.front().commands.handle(); }
  VkCommandBuffer last() const noexcept { return stamps_.back().commands.handle(); }

  /// Milliseconds between the two timestamps of the last run, which must be done; does not wait and allocates nothing.
  /// Absent where the counter stood still: that says nothing about the time.
  std::optional<double> took_ms() const {
    std::array<std::uint64_t, 2> ticks{};
    for (std::size_t i = 0; i < ticks.size(); ++i) stamps_[i].point.read_ticks(std::span(ticks).subspan(i, 1));
    if (ticks[0] == ticks[1]) return {};
    return stamps_.front().point.nanoseconds(ticks[0], ticks[1]) / 1e6;
  }

 private:
  struct stamp {
    gpu::timestamps point;  // a pool of its own, which the commands reset
    gpu::recording commands;
  };
  std::array<stamp, 2> stamps_;
};

}  // namespace intaglio::runtime
