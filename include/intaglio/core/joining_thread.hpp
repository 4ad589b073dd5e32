// SPDX-License-Identifier: MIT
// std::jthread without its stop token. libc++ has std::jthread from version 20 on; older versions have it only behind a
// flag.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <thread>
#include <type_traits>
#include <utility>

namespace intaglio {

/// A thread that its destructor joins.
class joining_thread {
 public:
  joining_thread() = default;
  /// @throws std::system_error: the system gives no more threads
  template <class Work>
    requires std::is_invocable_v<std::decay_t<Work>>
  explicit joining_thread(Work&& work) : thread_(std::forward<Work>(work)) {}
  joining_thread(joining_thread&&) noexcept = default;
  /// Joins the thread that it had, then takes the other one.
  joining_thread& operator=(joining_thread&& from) noexcept {
    std::thread taken = std::move(from.thread_);
    if (joinable()) join();
    thread_ = std::move(taken);
    return *this;
  }
  ~joining_thread() {
    if (joinable()) join();
  }

  bool joinable() const noexcept { return thread_.joinable(); }
  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace intaglio
