// SPDX-License-Identifier: MIT
// Draws of tokens in a form, on threads of their own: how long one takes depends on the form, and the engine's thread
// waits for none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "generation.hpp"

namespace intaglio::serve {

class form_draws {
 public:
  /// One draw. The thread that draws owns it until it is done, then the thread that asked.
  struct draw {
    std::shared_ptr<generation> who;
    std::vector<float> logits;          ///< [vocab_size]
    std::vector<std::int32_t> history;  ///< all tokens so far
    std::int32_t id = 0;                ///< the token; at first the one that the device has drawn
    std::string error;                  ///< there is none: why
    int status = 503;                   ///< as the error is answered
    bool done = false;                  ///< under the mutex
  };

  /// @param wake called by a thread that is done, under no lock
  form_draws(std::size_t threads, std::function<void()> wake);
  ~form_draws();

  std::shared_ptr<draw> start(std::shared_ptr<generation> who, std::span<const float> logits,
                              std::span<const std::int32_t> history, std::int32_t of_device);
  bool done(const draw& one) const;
  /// Until all of them are done, or the time is over.
  void wait(std::span<const std::shared_ptr<draw>> list, std::chrono::microseconds most) const;

 private:
  void draw_waiting();

  std::function<void()> wake_;
  mutable std::mutex mutex_;
  mutable std::condition_variable work_, done_;
  std::deque<std::shared_ptr<draw>> waiting_;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace intaglio::serve
