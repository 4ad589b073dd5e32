// SPDX-License-Identifier: MIT
#include "intaglio/core/checked.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::checked_size;

namespace {
constexpr std::uint64_t top = ~0ull;
static_assert((checked_size{2} + 3).value() == 5 && (checked_size{7} - 7).value() == 0 && (checked_size{6} * 7).value() == 42);
static_assert(!(checked_size{top} + 1) && (checked_size{top} + 0) && !(checked_size{0} - 1));
static_assert(!(checked_size{1ull << 32} * (1ull << 32)) && (checked_size{1ull << 32} * ((1ull << 32) - 1)));
static_assert((checked_size{0} * top).value() == 0 && !(checked_size{1} / 0));
static_assert(!(checked_size{top} * 2 / 2), "an overflow is never forgotten");
static_assert(checked_size{0}.round_up(32).value() == 0 && checked_size{33}.round_up(32).value() == 64 && checked_size{64}.round_up(32).value() == 64);
static_assert(!checked_size{top}.round_up(32) && !checked_size{1}.round_up(0));
static_assert(intaglio::range_inside(0, 10, 10) && intaglio::range_inside(10, 0, 10) && !intaglio::range_inside(1, 10, 10));
static_assert(!intaglio::range_inside(top, 2, 10), "a wrapped end is not inside");
static_assert(checked_size{5}.fits(5) && !checked_size{6}.fits(5) && !checked_size::overflowed().fits(top));
}  // namespace

TEST_CASE("products at the border of 64 bits", "[core][checked]") {
  for (unsigned a = 0; a < 64; ++a)
    for (unsigned b = 0; b < 64; ++b) {
      CHECK(static_cast<bool>(checked_size{1ull << a} * (1ull << b)) == (a + b < 64));
      if (a + b == 64) CHECK((checked_size{(1ull << a) - 1} * (1ull << b)).value() == ((1ull << a) - 1) << b);
    }
}
