// SPDX-License-Identifier: MIT
#include "intaglio/io/rank_queue.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <set>
#include <tuple>
#include <vector>

using namespace intaglio::io;

namespace {

std::vector<std::int32_t> drained(rank_queue& queue) {
  std::vector<std::int32_t> out;
  while (!queue.empty()) out.push_back(queue.pop().result);
  return out;
}

}  // namespace

TEST_CASE("a set of numbers finds its least") {
  number_set set;
  std::set<std::uint32_t> expected;
  std::mt19937 random(13);
  for (int round = 0; round < 50'000; ++round) {
    const std::uint32_t number = static_cast<std::uint32_t>(random()) & 0xFFFFFF;
    if (random() % 3 != 0 || expected.empty()) set.insert(number), expected.insert(number);
    else set.erase(*expected.begin()), expected.erase(expected.begin());
    REQUIRE(set.empty() == expected.empty());
    if (!expected.empty()) REQUIRE(set.least() == *expected.begin());
  }
}

TEST_CASE("a set of numbers has its edges, and a number that is inserted twice once") {
  number_set set;
  CHECK(set.empty());
  for (const std::uint32_t number : {0xFFFFFFu, 64u, 63u, 4096u, 0u, 63u}) set.insert(number);
  for (const std::uint32_t number : {0u, 63u, 64u, 4096u, 0xFFFFFFu}) {
    REQUIRE_FALSE(set.empty());
    CHECK(set.least() == number);
    set.erase(number);
  }
  CHECK(set.empty());
}

TEST_CASE("a queue used for one long piece after another starts empty") {
  rank_queue queue;
  for (int round = 0; round < 2; ++round) {
    queue.start(10'000);
    queue.push(70'000, {5, 2, 1});
    queue.push(3, {9, 2, 2});
    queue.push(70'000, {1, 2, 3});
    queue.push(70'000, {7, 2, 4});
    queue.push(1u << 25, {0, 2, 5});
    CHECK(drained(queue) == std::vector<std::int32_t>{2, 3, 1, 4, 5});
  }
}

TEST_CASE("a queue starts empty where candidates were left in it") {
  for (const std::size_t before : {100u, 10'000u})
    for (const std::size_t after : {100u, 10'000u}) {
      INFO(before << " symbols, then " << after);
      rank_queue queue;
      queue.start(before);
      queue.push(7, {5, 2, 1});
      queue.push(7, {6, 2, 2});
      queue.push(7, {4, 2, 3});
      queue.push(9, {8, 2, 4});
      queue.push(1u << 25, {0, 2, 5});
      CHECK(queue.pop().result == 3);
      queue.start(after);
      CHECK(queue.empty());
      queue.push(9, {3, 2, 6});
      queue.push(7, {9, 2, 7});
      queue.push(8, {1, 2, 8});
      CHECK(drained(queue) == std::vector<std::int32_t>{7, 8, 6});
    }
}

TEST_CASE("a queue gives the lowest rank first, and of equal ones the leftmost, while others come") {
  using key = std::tuple<std::uint32_t, std::uint32_t, std::int32_t>;  // rank, left, result
  for (const std::size_t symbols : {8'192u, 8'193u}) {
    INFO(symbols);
    rank_queue queue;
    queue.start(symbols);
    std::set<key> expected;
    std::mt19937 random(17);
    const auto take = [&] {
      const auto [rank, left, result] = *expected.begin();
      expected.erase(expected.begin());
      REQUIRE_FALSE(queue.empty());
      const auto got = queue.pop();
      REQUIRE((got.result == result && got.left == left && got.bytes == rank % 97));
    };
    std::uint32_t sweep = 0;
    for (std::int32_t i = 0; i < 3'000; ++i) {
      // Ranks that are shared, some that no list holds; indices now from left to right, now anywhere, each of its own.
      const std::uint32_t rank = random() % 8 == 0 ? (1u << 24) + static_cast<std::uint32_t>(random() % 3)
                                                   : static_cast<std::uint32_t>(random() % 40);
      const std::uint32_t left = (random() % 2 != 0 ? sweep++ : static_cast<std::uint32_t>(random() % 5'000)) * 4'096 +
                                 static_cast<std::uint32_t>(i);
      queue.push(rank, {left, rank % 97, i});
      expected.insert({rank, left, i});
      if (random() % 3 == 0) take();
    }
    while (!expected.empty()) take();
    CHECK(queue.empty());
  }
}
