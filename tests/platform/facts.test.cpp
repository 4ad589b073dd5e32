// SPDX-License-Identifier: MIT
#include "intaglio/platform/facts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "intaglio/platform/clock.hpp"

using namespace intaglio::platform;

TEST_CASE("facts: memory that is touched is counted", "[facts]") {
  const memory_use before = memory_of_process();
  const std::vector<char> some(std::size_t{64} << 20, 'x');
  const memory_use after = memory_of_process();
  CHECK(some.back() == 'x');
  CHECK(after.own >= before.own + (std::size_t{60} << 20));
  CHECK(after.most >= after.own);
  CHECK(after.of_files > 0);
  CHECK_FALSE(system_name().empty());
}

TEST_CASE("clock: points in time as a calendar has them", "[clock]") {
  const auto at = utc_time(1'800'000'000);
  REQUIRE(at);
  CHECK((at->tm_year == 127 && at->tm_mon == 0 && at->tm_mday == 15 && at->tm_hour == 8 && at->tm_min == 0));
  CHECK(local_time(1'800'000'000));
}

TEST_CASE("clock: processor time grows with what is computed, a thread's with its own", "[clock]") {
  const auto before = processor_time(), own = processor_time_of_thread();
  std::thread([] {
    volatile std::uint64_t sum = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < end) sum = sum + 1;
  }).join();
  const auto all = processor_time() - before, here = processor_time_of_thread() - own;
  CHECK(all > std::chrono::nanoseconds(0));
  CHECK(here < all);
}
