// SPDX-License-Identifier: MIT
#include "intaglio/runtime/parallel.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

TEST_CASE("every item is done once, on any number of threads") {
  for (const unsigned threads : {0u, 1u, 2u, 7u})
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
      std::vector<std::atomic<int>> done(count);
      intaglio::runtime::parallel(threads, count, [&](std::size_t i) { ++done[i]; });
      for (const auto& each : done) CHECK(each == 1);
    }
}

TEST_CASE("a failure stops the rest and reaches the caller") {
  for (const unsigned threads : {1u, 2u}) {
    std::atomic<std::size_t> begun{0};
    CHECK_THROWS_AS(intaglio::runtime::parallel(threads, 100'000,
                                                [&](std::size_t i) {
                                                  ++begun;
                                                  if (i == 10) throw std::out_of_range("ten");
                                                  if (i > 10)
                                                    std::this_thread::sleep_for(std::chrono::milliseconds(
                                                        1));  // 100 s for all, whatever the other thread is kept from
                                                }),
                    std::out_of_range);
    CHECK(begun < 100'000);
    if (threads == 1) CHECK(begun == 11);
  }
}
