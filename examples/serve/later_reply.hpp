// SPDX-License-Identifier: MIT
// One document that another thread has ready later.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "api_error.hpp"
#include "http.hpp"

namespace intaglio::serve {

class later_reply : public pending_reply {
 public:
  explicit later_reply(std::function<void()> wake) : wake_(std::move(wake)) {}

  bool streams() const override { return false; }
  std::string poll() override { return {}; }
  bool done() const override {
    const std::lock_guard lock(mutex_);
    return answer_ || error_;
  }
  http_reply reply() override {
    const std::lock_guard lock(mutex_);
    if (error_) throw *error_;
    return std::move(*answer_);
  }
  void cancel() override { cancelled_ = true; }

  /// Called by any thread: the first call ends it.
  void give(http_reply answer) {
    end([&] { answer_ = std::move(answer); });
  }
  void refuse(const api_error& error) {
    end([&] { error_ = error; });
  }
  bool cancelled() const { return cancelled_; }

 private:
  template <class Set>
  void end(Set&& set) {
    {
      const std::lock_guard lock(mutex_);
      if (!answer_ && !error_) set();
    }
    wake_();
  }

  std::function<void()> wake_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  std::optional<http_reply> answer_;
  std::optional<api_error> error_;
};

}  // namespace intaglio::serve
