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

/// Calls make(i, slot) for every i < count on up to `threads` other threads and take(i, slot) on this one, i rising. An
/// item uses one of `slots` slots from the start of make to the end of take, so at most that many items are alive. With
/// one thread all calls are on this one.
/// @error exceptions of make or take; of make, that of the lowest item. After it nothing further is taken, and all
/// threads have ended
/// threads have ended
template <class Make, class Take>
void ordered_work(unsigned threads, std::size_t slot_count, std::size_t count, Make&& make, Take&& take) {
  threads = static_cast<unsigned>((std::min<std::size_t>)(threads, count));
  std::vector<joining_thread> workers;
  std::mutex guard;
  std::condition_variable changed;
  enum class state : unsigned char { free, busy, full };
  std::vector<state> states(slot_count, state::free);
  std::vector<std::exception_ptr> failures(slot_count);
  std::size_t next = 0, taken = 0;  // number of items begun, number of items taken
  bool ended = false;

  const auto work = [&]() noexcept {
    std::unique_lock lock(guard);
    while (true) {
      changed.wait(lock, [&] { return ended || next >= count || next < taken + slot_count; });
      if (ended || next >= count) return;
      const std::size_t item = next++, slot = item % slot_count;
      states[slot] = state::busy;
      lock.unlock();
      std::exception_ptr failure;
      try {
        make(item, slot);
      } catch (...) { failure = std::current_exception(); }
      lock.lock();
      failures[slot] = failure;
      states[slot] = state::full;
      if (failure) next = count;
      changed.notify_all();
    }
  };
  struct ending {  // however this function is left, the workers end first
    std::mutex& guard;
    std::condition_variable& changed;
    bool& ended;
    std::vector<joining_thread>& workers;
    ~ending() {
      {
        const std::lock_guard lock(guard);
        ended = true;
      }
      changed.notify_all();
      workers.clear();
    }
  } const end{guard, changed, ended, workers};

  if (threads > 1) {
    try {
      for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work);
    } catch (const std::system_error&) {  // the system gives no more threads
    }
  }
  if (workers.empty()) {
    for (std::size_t item = 0; item < count; ++item) {
      make(item, item % slot_count);
      take(item, item % slot_count);
    }
    return;
  }
  for (std::size_t item = 0; item < count; ++item) {
    const std::size_t slot = item % slot_count;
    {
      std::unique_lock lock(guard);
      changed.wait(lock, [&] { return states[slot] == state::full; });
      if (failures[slot]) std::rethrow_exception(failures[slot]);
    }
    take(item, slot);
    {
      const std::lock_guard lock(guard);
      states[slot] = state::free;
      taken = item + 1;
    }
    changed.notify_all();
  }
}

}  // namespace intaglio::io
