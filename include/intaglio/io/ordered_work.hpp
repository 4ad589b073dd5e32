// SPDX-License-Identifier: MIT
// Makes items on several threads and takes them in order on one thread: the pattern of reading, encoding and writing a
// large file.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "intaglio/core/joining_thread.hpp"

namespace intaglio::io {

/// `threads`; for 0 the number of processors.
inline unsigned worker_threads(unsigned threads) {
  return threads != 0 ? threads : (std::max)(1u, std::thread::hardware_concurrency());
}

/// The state that threads of ordered_work share.
class ordered_slots {
 public:
  ordered_slots(std::size_t slot_count, std::size_t count) : count_(count), full_(slot_count), failures_(slot_count) {}
  ordered_slots(const ordered_slots&) = delete;
  ordered_slots& operator=(const ordered_slots&) = delete;
  ~ordered_slots() {  // however the work is left, the workers end first
    {
      const std::lock_guard lock(guard_);
      ended_ = true;
    }
    changed_.notify_all();
    workers_.clear();
  }

  /// Starts threads that call make(item, slot) for the items in their order. @return false: the system gave none
  template <class Make>
  bool start(unsigned threads, Make& make) {
    try {
      for (unsigned i = 0; i < threads; ++i) workers_.emplace_back([this, &make]() noexcept { work(make); });
    } catch (const std::system_error&) {  // the system gives no more threads
    }
    return !workers_.empty();
  }
  /// Waits until an item is made. @error what make threw
  void await(std::size_t item) {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return full_[item % full_.size()] != 0; });
    if (const auto& failure = failures_[item % full_.size()]) std::rethrow_exception(failure);
  }
  /// Frees the slot of an item.
  void release(std::size_t item) {
    {
      const std::lock_guard lock(guard_);
      full_[item % full_.size()] = 0;
      taken_ = item + 1;
    }
    changed_.notify_all();
  }

 private:
  template <class Make>
  void work(Make& make) noexcept {
    std::unique_lock lock(guard_);
    while (true) {
      changed_.wait(lock, [&] { return ended_ || next_ >= count_ || next_ < taken_ + full_.size(); });
      if (ended_ || next_ >= count_) return;
      const std::size_t item = next_++, slot = item % full_.size();
      lock.unlock();
      std::exception_ptr failure;
      try {
        make(item, slot);
      } catch (...) { failure = std::current_exception(); }
      lock.lock();
      failures_[slot] = failure;
      full_[slot] = 1;
      if (failure) next_ = count_;
      changed_.notify_all();
    }
  }

  std::size_t count_, next_ = 0, taken_ = 0;  ///< number of items, of items begun, of items taken
  bool ended_ = false;
  std::vector<char> full_;  ///< by slot: an item is made and not taken yet
  std::vector<std::exception_ptr> failures_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<joining_thread> workers_;
};

/// Calls make(i, slot) for every i < count on up to `threads` other threads and take(i, slot) on this one, i rising. An
/// item uses one of `slots` slots from the start of make to the end of take, so at most that many items are alive. With
/// one thread all calls are on this one.
/// @error exceptions of make or take; if several items throw in make, the exception of the lowest item. After it
/// nothing further is taken, and all threads have ended
template <class Make, class Take>
void ordered_work(unsigned threads, std::size_t slot_count, std::size_t count, Make&& make, Take&& take) {
  threads = static_cast<unsigned>((std::min<std::size_t>)(threads, count));
  ordered_slots shared(slot_count, count);
  const bool parallel = threads > 1 && shared.start(threads, make);
  for (std::size_t item = 0; item < count; ++item) {
    if (parallel) shared.await(item);
    else make(item, item % slot_count);
    take(item, item % slot_count);
    if (parallel) shared.release(item);
  }
}

}  // namespace intaglio::io
