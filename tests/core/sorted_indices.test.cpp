// SPDX-License-Identifier: MIT
#include "intaglio/core/sorted_indices.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace intaglio;

namespace {
/// Values of `kinds` kinds, a small number, so that many are equal.
std::vector<int> made_up(std::size_t count, std::uint32_t kinds) {
  std::vector<int> out(count);
  std::uint32_t state = 1;
  for (int& each : out) {
    state = state * 1664525u + 1013904223u;
    each = static_cast<int>((state >> 8) % kinds);
  }
  return out;
}
}  // namespace

TEST_CASE("indices are sorted by what they stand for, equal things by their indices", "[core][sorted_indices]") {
  for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 1000u})
    for (const std::uint32_t kinds : {1u, 2u, 7u, 1u << 20}) {
      const std::vector<int> values = made_up(count, kinds);
      const auto found = sorted_indices(count, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
      std::vector<std::size_t> expected(count);
      std::iota(expected.begin(), expected.end(), std::size_t{0});
      std::stable_sort(expected.begin(), expected.end(),
                       [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
      CHECK(found == expected);
    }
}

TEST_CASE("a part of the indices is sorted and the rest stays", "[core][sorted_indices]") {
  const std::vector<int> values{5, 1, 4, 9, 2};
  std::vector<std::size_t> indices{0, 1, 2, 3, 4};
  sort_indices(std::span(indices).first(3), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  CHECK(indices == std::vector<std::size_t>{1, 2, 0, 3, 4});
}

TEST_CASE("elements are sorted and equal ones keep their order", "[core][sorted_indices]") {
  std::vector<std::pair<int, std::string>> all{{2, "a"}, {1, "b"}, {2, "c"}, {1, "d"}, {0, "e"}};
  sort_once(all, [](const auto& a, const auto& b) { return a.first < b.first; });
  CHECK(all == std::vector<std::pair<int, std::string>>{{0, "e"}, {1, "b"}, {1, "d"}, {2, "a"}, {2, "c"}});
  std::vector<std::unique_ptr<int>> owned;
  for (const int value : made_up(100, 1u << 20)) owned.push_back(std::make_unique<int>(value));
  sort_once(owned, [](const auto& a, const auto& b) { return *a < *b; });
  CHECK(std::is_sorted(owned.begin(), owned.end(), [](const auto& a, const auto& b) { return *a < *b; }));
}

TEST_CASE("what a comparison throws comes out, and nothing was moved", "[core][sorted_indices]") {
  std::vector<std::string> all{"b", "a", "c"};
  const auto refuse = [](const std::string&, const std::string&) -> bool { throw std::runtime_error("no order"); };
  CHECK_THROWS_AS(sort_once(all, refuse), std::runtime_error);
  CHECK(all == std::vector<std::string>{"b", "a", "c"});
}
