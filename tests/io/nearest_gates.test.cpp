// SPDX-License-Identifier: MIT
#include "intaglio/io/nearest_gates.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <random>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace intaglio::io;

TEST_CASE("nearest gates: those of a search in f64, of equal scores the lowest") {
  std::mt19937 random(5);
  for (const std::size_t width : {1u, 31u, 32u, 67u, 256u}) {
    INFO(width);
    constexpr std::size_t features = 90;
    std::vector<float> gate(features * width), x(width);
    // Small integers: sums are exact in f32 and in f64, and many are equal.
    for (float& value : gate) value = static_cast<float>(random() % 5) - 2;
    for (float& value : x) value = static_cast<float>(random() % 5) - 2;
    std::vector<double> scores(features);
    std::vector<std::uint32_t> order(features);
    for (std::uint32_t f = 0; f < features; ++f) {
      order[f] = f;
      for (std::size_t i = 0; i < width; ++i)
        scores[f] += static_cast<double>(gate[f * width + i]) * static_cast<double>(x[i]);
    }
    std::ranges::stable_sort(
        order, [&](std::uint32_t a, std::uint32_t b) { return std::fabs(scores[a]) > std::fabs(scores[b]); });
    for (const std::size_t count : {std::size_t{1}, std::size_t{10}, features, features + 5}) {
      const auto found = nearest_gates(gate, x, count);
      REQUIRE(found.size() == std::min(count, features));
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK((found[i].feature == order[i] && static_cast<double>(found[i].score) == scores[order[i]]));
    }
  }
}

TEST_CASE("nearest gates: the same bits with and without AVX") {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (const std::size_t width : {1u, 8u, 33u, 64u, 1000u}) {
    std::vector<float> a(width), b(width);
    for (float& value : a) value = normal(random);
    for (float& value : b) value = normal(random);
    CHECK(gates::fastest_dot()(a.data(), b.data(), width) == gates::plain_dot(a.data(), b.data(), width));
  }
}

TEST_CASE("nearest gates: numbers that are none, and gates of another width") {
  const float none = std::numeric_limits<float>::quiet_NaN(), endless = std::numeric_limits<float>::infinity();
  const std::vector<float> gate{1, 2, 3, none};
  CHECK_THROWS_MATCHES(nearest_gates(gate, std::vector<float>{1, 2}, 1), intaglio::argument_error,
                       MessageMatches(ContainsSubstring("NaN as the score of feature 1")));
  CHECK_THROWS_MATCHES(nearest_gates(gate, std::vector<float>{1, none}, 1), intaglio::argument_error,
                       MessageMatches(ContainsSubstring("NaN at 1")));
  CHECK_THROWS_MATCHES(nearest_gates(gate, std::vector<float>{endless, 1}, 1), intaglio::argument_error,
                       MessageMatches(ContainsSubstring("infinity at 0")));
  CHECK_THROWS_MATCHES(nearest_gates(gate, std::vector<float>{1, 2, 3}, 1), intaglio::argument_error,
                       MessageMatches(ContainsSubstring("vectors of 3")));
  CHECK_THROWS_AS(nearest_gates(gate, {}, 1), intaglio::argument_error);
}
