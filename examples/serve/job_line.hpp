// SPDX-License-Identifier: MIT
// Jobs that are done one after the other, on a thread of their own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "api_error.hpp"

namespace intaglio::serve {

class job_line {
 public:
  job_line() : thread_([this] { run(); }) {}
  /// Waits for the running job; the others are dropped.
  ~job_line() {
    ask_to_stop();
    thread_.join();
  }
  job_line(const job_line&) = delete;
  job_line& operator=(const job_line&) = delete;

  /// Has a job done when its turn comes; what it throws it has to catch. @throws api_error 429: too many wait
  void add(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= most_waiting)
        throw api_error(429, "the queue is full: expected at most " + std::to_string(most_waiting) + " jobs that wait",
                        {}, "queue_full", 5);
      waiting_.push_back(std::move(job));
    }
    news_.notify_all();
  }
  void ask_to_stop() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    news_.notify_all();
  }
  /// What running jobs look at.
  bool stops() const { return stops_; }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);;) {
      news_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
      if (stops_) return;
      const auto job = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  static constexpr std::size_t most_waiting = 16;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> waiting_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace intaglio::serve
