// SPDX-License-Identifier: MIT
// Memory of weights that is still being allocated, buffer by buffer, while the first bytes are read, and copied where the driver lets others
// submit meanwhile: an H200's does not, and takes two thirds as long to give memory as the bus to fill it (docs/performance.md).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// Allocates on a thread of its own, which ends with it; used by one other thread.
class memory_ahead {
 public:
  /// @param of must outlive it  @param largest_piece bytes of one allocation, 0: the device's limit
  memory_ahead(const gpu::device& on, const plan::table& of, const weight_split& split, std::uint64_t largest_piece)
      : on_(on), device_(sizes_of(of, split.device)), host_(sizes_of(of, split.host)), largest_piece_(largest_piece) {
    items_.items.resize(device_.size() + host_.size());
    items_.buffers.reserve(items_.items.size());  // so that none moves while it is being filled
    thread_ = std::jthread([this] { run(); });
  }
  memory_ahead(const memory_ahead&) = delete;
  memory_ahead& operator=(const memory_ahead&) = delete;
  ~memory_ahead() {
    const std::lock_guard lock(guard_);
    ends_ = true;
  }

  /// Waits until the first `count` items have their places, which those behind them may not have. @error as of allocate_items
  const placed_items& until(std::size_t count) {
    std::unique_lock lock(guard_);
    news_.wait(lock, [&] { return placed_ >= count || failure_; });
    if (placed_ < count) std::rethrow_exception(failure_);
    return items_;
  }
  /// All of them: those of the device's memory, then those of the host's. @error as of allocate_items
  placed_items take() && {
    until(items_.items.size());
    thread_.join();
    return std::move(items_);
  }

 private:
  void run() noexcept {
    try {
      for (const auto& [sizes, where, first] : {std::tuple(std::span(std::as_const(device_)), gpu::placement::device_local, std::size_t{0}),
                                                std::tuple(std::span(std::as_const(host_)), gpu::placement::host, device_.size())})
        for (item_placer placer(on_, sizes, where, "the weights", largest_piece_); !placer.done();) {
          placer.place_some(items_, first);
          const std::lock_guard lock(guard_);
          placed_ = first + placer.placed();
          news_.notify_all();
          if (ends_) return;
        }
    } catch (...) {
      const std::lock_guard lock(guard_);
      failure_ = std::current_exception();
      news_.notify_all();
    }
  }

  gpu::device on_;
  std::vector<std::uint64_t> device_, host_;
  std::uint64_t largest_piece_;
  placed_items items_;
  std::mutex guard_;
  std::condition_variable news_;
  std::size_t placed_ = 0;
  std::exception_ptr failure_;
  bool ends_ = false;
  std::jthread thread_;  // the last: it uses all of the above
};

}  // namespace intaglio::runtime
