// SPDX-License-Identifier: MIT
// A loop over independent items on several threads.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "intaglio/core/joining_thread.hpp"

namespace intaglio::runtime {

/// Calls body(i) for every i < count on up to `threads` threads, including this one. After a failure no further item
/// begins.
/// @error what `body` throws: the first failure in time, after all threads have ended
template <class Body>
void parallel(unsigned threads, std::size_t count, Body&& body) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr failure;
  const auto work = [&]() noexcept {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        next = count;
        const std::lock_guard lock(guard);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<joining_thread> workers;
    try {
      for (std::size_t i = 1; i < (std::min<std::size_t>)(threads, count); ++i) workers.emplace_back(work);
    } catch (...) {  // no more threads are available: the running ones do all the work
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace intaglio::runtime
