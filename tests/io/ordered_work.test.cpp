// SPDX-License-Identifier: MIT
#include "intaglio/io/ordered_work.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>

using namespace intaglio::io;

TEST_CASE("ordered_work: items are taken in order, on the calling thread, and never more alive than slots", "[work]") {
  for (const unsigned threads : {1u, 2u, 5u})
    for (const std::size_t slot_count : {std::size_t{1}, std::size_t{3}}) {
      std::vector<std::size_t> made(slot_count, 1000), taken;
      std::atomic<int> alive{0}, most{0};
      const auto self = std::this_thread::get_id();
      ordered_work(
          threads, slot_count, 100,
          [&](std::size_t item, std::size_t slot) {
            const int now = ++alive;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
            made[slot] = item * item;
          },
          [&](std::size_t item, std::size_t slot) {
            CHECK(std::this_thread::get_id() == self);
            CHECK(made[slot] == item * item);
            taken.push_back(item);
            --alive;
          });
      REQUIRE(taken.size() == 100);
      for (std::size_t i = 0; i < 100; ++i) CHECK(taken[i] == i);
      CHECK(most <= static_cast<int>(slot_count));
    }
  ordered_work(
      4, 2, 0, [](std::size_t, std::size_t) { FAIL(); }, [](std::size_t, std::size_t) { FAIL(); });
}

TEST_CASE("ordered_work: the lowest failing item's failure is the one that is thrown", "[work]") {
  for (const unsigned threads : {1u, 4u})
    for (int round = 0; round < 20; ++round) {
      std::size_t taken = 0;
      const auto run = [&] {
        ordered_work(
            threads, 8, 50,
            [](std::size_t item, std::size_t) {
              if (item == 7 || item == 9) throw std::runtime_error(std::to_string(item));
            },
            [&](std::size_t, std::size_t) { ++taken; });
      };
      try {
        run();
        FAIL("nothing was thrown");
      } catch (const std::runtime_error& failure) { CHECK(std::string(failure.what()) == "7"); }
      CHECK(taken == 7);
    }
}

TEST_CASE("ordered_work: a failure of taking ends the rest", "[work]") {
  std::atomic<std::size_t> made{0};
  CHECK_THROWS_AS(ordered_work(
                      3, 4, 1000, [&](std::size_t, std::size_t) { ++made; },
                      [](std::size_t item, std::size_t) {
                        if (item == 5) throw std::runtime_error("enough");
                      }),
                  std::runtime_error);
  CHECK(made <= 5 + 4);
}

TEST_CASE("ordered_work: no number of threads means the machine's", "[work]") {
  CHECK(worker_threads(3) == 3);
  CHECK(worker_threads(0) >= 1);
}
