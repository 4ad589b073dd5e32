// SPDX-License-Identifier: MIT
#include "intaglio/core/layer_pattern.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::layer_pattern;

namespace {
constexpr layer_pattern one{};
static_assert(one.kinds() == 1 && one(0) == 0 && one(41) == 0 && one.count(0, 30) == 30);
constexpr layer_pattern sixth{6, {0, 0, 0, 0, 0, 1}};
static_assert(sixth.kinds() == 2 && sixth(4) == 0 && sixth(5) == 1 && sixth(6) == 0 && sixth(11) == 1);
static_assert(one.ends_each_period() && sixth.ends_each_period());
static_assert(!layer_pattern{3, {0, 1, 0}}.ends_each_period() && !layer_pattern{3, {0, 1, 2}}.ends_each_period() &&
              !layer_pattern{2, {}}.ends_each_period());
}  // namespace

TEST_CASE("the last time a pattern may be cut short", "[core]") {
  CHECK(sixth.count(1, 7) == 1);
  CHECK(sixth.count(0, 7) == 6);
  CHECK(sixth.count(1, 34) == 5);
  CHECK(sixth != one);
}
