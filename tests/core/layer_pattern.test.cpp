// SPDX-License-Identifier: MIT
#include "intaglio/core/layer_pattern.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

using intaglio::layer_pattern;
using intaglio::numbered_kinds;

namespace {
constexpr layer_pattern one{};
static_assert(one.kinds() == 1 && one(0) == 0 && one(41) == 0 && one.count(0, 30) == 30);
constexpr layer_pattern sixth{6, {0, 0, 0, 0, 0, 1}};
static_assert(sixth.kinds() == 2 && sixth(4) == 0 && sixth(5) == 1 && sixth(6) == 0 && sixth(11) == 1);
static_assert(one.ends_each_period() && sixth.ends_each_period());
static_assert(!layer_pattern{3, {0, 1, 0}}.ends_each_period() && !layer_pattern{3, {0, 1, 2}}.ends_each_period() &&
              !layer_pattern{2, {}}.ends_each_period());

// The shortest list that gives a sequence, which may be cut short at its end.
constexpr std::array<std::uint8_t, 7> cut{0, 0, 1, 0, 0, 1, 0};
static_assert(layer_pattern::of(cut) == layer_pattern{3, {0, 0, 1}});
constexpr std::array<std::uint8_t, 5> same{2, 2, 2, 2, 2};
static_assert(layer_pattern::of(same) == layer_pattern{1, {2}});
constexpr layer_pattern any = [] {
  std::array<std::uint8_t, 128> kinds{};
  for (std::size_t l = 0; l < kinds.size(); ++l) kinds[l] = static_cast<std::uint8_t>(l * l % 17);
  kinds[127] = 63;
  return layer_pattern::of(kinds);
}();
static_assert(any.period == 128 && any.kinds() == layer_pattern::max_kinds && any(127) == 63 && any(5) == 8);
static_assert(any.count(63, 128) == 1 && any.count(63, 127) == 0 && any.count_any(~std::uint64_t{0}, 128) == 128 &&
              any.count_any(3, 20) == any.count(0, 20) + any.count(1, 20));
}  // namespace

TEST_CASE("the last time a pattern may be cut short", "[core]") {
  CHECK(sixth.count(1, 7) == 1);
  CHECK(sixth.count(0, 7) == 6);
  CHECK(sixth.count(1, 34) == 5);
  CHECK(sixth != one);
}

TEST_CASE("kinds are numbered as their traits first appear", "[core][layer_pattern]") {
  constexpr auto found = numbered_kinds<char>::of(6, [](std::uint32_t layer) { return "baabac"[layer]; });
  CHECK(found.count == 3);
  CHECK((found.traits[0] == 'b' && found.traits[1] == 'a' && found.traits[2] == 'c'));
  for (std::uint32_t layer = 0; layer < 6; ++layer) CHECK(found.traits[found.pattern(layer)] == "baabac"[layer]);
}
