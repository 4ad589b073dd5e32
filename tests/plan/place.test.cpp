// SPDX-License-Identifier: MIT
#include "intaglio/plan/place.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace intaglio;
using plan::placed_value;

static_assert(plan::aligned(0) == 0 && plan::aligned(1) == 256 && plan::aligned(256) == 256);
static_assert(plan::factors_offset(1, 250) == 256);
static_assert(plan::value_bytes({dtype::f32, 100, ir::section::period, {}}, 3) == 1200);
static_assert(plan::value_bytes({dtype::i8, 100, ir::section::period, {}}, 3) == 304 + 24);
static_assert(plan::first_fit({}, {text<32>{"a"}, dtype::f32, 4, 0, 16, 0, 1}) == 0);

TEST_CASE("values that live together never share bytes, whatever their sizes and lifetimes", "[plan][place]") {
  std::mt19937 random{7};
  for (int round = 0; round < 300; ++round) {
    std::vector<placed_value> placed;
    std::uint64_t sum = 0;
    for (int i = 0; i < 24; ++i) {
      placed_value v;
      v.bytes = random() % 5000 + 1;
      v.first = static_cast<std::uint32_t>(random() % 20);
      v.last = v.first + static_cast<std::uint32_t>(random() % 6);
      v.offset = plan::first_fit(placed, v);
      REQUIRE(v.offset % plan::arena_alignment == 0);
      for (const auto& other : placed)
        if (other.first <= v.last && v.first <= other.last)
          REQUIRE((v.offset >= other.offset + other.bytes || other.offset >= v.offset + v.bytes));
      sum += plan::aligned(v.bytes);
      REQUIRE(v.offset + v.bytes <= sum);
      placed.push_back(v);
    }
  }
}

TEST_CASE("a value takes the bytes of one that is dead", "[plan][place]") {
  std::vector<placed_value> placed{{text<32>{"a"}, dtype::f32, 64, 0, 256, 0, 1},
                                   {text<32>{"b"}, dtype::f32, 64, 256, 256, 0, 5}};
  CHECK(plan::first_fit(placed, {text<32>{"c"}, dtype::f32, 64, 0, 256, 2, 3}) == 0);
  CHECK(plan::first_fit(placed, {text<32>{"d"}, dtype::f32, 64, 0, 257, 2, 3}) == 512);
}
