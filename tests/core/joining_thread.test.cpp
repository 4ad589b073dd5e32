// SPDX-License-Identifier: MIT
#include <intaglio/core/joining_thread.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <chrono>
#include <type_traits>
#include <utility>
#include <vector>

using intaglio::joining_thread;

namespace {
static_assert(!std::is_copy_constructible_v<joining_thread> && std::is_nothrow_move_constructible_v<joining_thread>);

/// Work that ends a while after it began.
auto slowly(std::atomic<int>& ended) {
  return [&ended] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++ended;
  };
}
}  // namespace

TEST_CASE("a thread is waited for when it goes, and when another replaces it") {
  std::atomic<int> ended = 0;
  {
    std::vector<joining_thread> several;
    for (int i = 0; i < 3; ++i) several.emplace_back(slowly(ended));
  }
  CHECK(ended == 3);

  joining_thread one(slowly(ended));
  CHECK(one.joinable());
  one = joining_thread(slowly(ended));
  CHECK(ended >= 4);
  joining_thread moved = std::move(one);
  CHECK_FALSE(one.joinable());
  moved.join();
  CHECK(ended == 5);
  moved = joining_thread{};
  CHECK_FALSE(moved.joinable());
}
