// SPDX-License-Identifier: MIT
// Submissions of passes that are in flight, and how long each took.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "intaglio/runtime/pass_kind.hpp"

namespace intaglio::runtime {

/// One submission.
struct flight {
  std::uint64_t number = 0;  ///< number that gpu::queue gave it
  std::uint32_t segments = 0, passes = 0;
  std::uint64_t job = 0;
  pass_kind kind = pass_kind::decode;
  std::chrono::steady_clock::time_point at{};    ///< when it was submitted
  std::uint32_t traced = 0;                      ///< number of passes that end in it and leave a trace
  std::chrono::steady_clock::time_point from{};  ///< before it was submitted: the device did not begin earlier
  bool stamped = false;                          ///< the device wrote the times of its begin and its end
};

/// Submissions in flight, the oldest first; they end in this order.
class flights {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t most = 2;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == most; }
  const flight& oldest() const noexcept { return all_[first_]; }
  /// Call it only if there is room.
  void add(const flight& one) noexcept { all_[(first_ + size_++) % most] = one; }

  /// A submission that has ended, with its time.
  struct ended {
    flight of;
    std::optional<double> took_ms;  ///< time since its submission or since the previous one ended, where both are known
    double at_most_ms;              ///< time from before its submission until now, which is after its end
  };
  /// Removes the oldest submission, which has ended.
  /// @param waited it ended just now; else it may have ended long before, so that its time and the start of the next
  ///   one are unknown
  ended end_oldest(bool waited, clock::time_point now) noexcept {
    ended out{oldest(), {}, 0};
    const auto until_now = [&](clock::time_point from) {
      return std::chrono::duration<double, std::milli>(now - from).count();
    };
    const clock::time_point from = (std::max)(out.of.at, last_end_);
    if (waited && (end_is_sharp_ || from == out.of.at)) out.took_ms = until_now(from);
    out.at_most_ms = until_now(out.of.from);
    last_end_ = now;
    end_is_sharp_ = waited;
    first_ = (first_ + 1) % most;
    --size_;
    return out;
  }

 private:
  std::array<flight, most> all_{};
  std::size_t first_ = 0, size_ = 0;
  clock::time_point last_end_{};
  bool end_is_sharp_ = false;  ///< last_end_ is the end of a wait
};

}  // namespace intaglio::runtime
