// SPDX-License-Identifier: MIT
#include "intaglio/core/checked.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
#include <optional>

using intaglio::checked_size;

namespace {
constexpr std::uint64_t top = ~0ull, half = 1ull << 63, root = 1ull << 32;
static_assert((checked_size{2} + 3).value() == 5 && (checked_size{7} - 7).value() == 0 &&
              (checked_size{6} * 7).value() == 42);
static_assert(!(checked_size{top} + 1) && (checked_size{top} + 0) && !(checked_size{0} - 1));
static_assert(!(checked_size{1ull << 32} * (1ull << 32)) && (checked_size{1ull << 32} * ((1ull << 32) - 1)));
static_assert((checked_size{0} * top).value() == 0 && !(checked_size{1} / 0));
static_assert(!(checked_size{top} * 2 / 2), "an overflow is never forgotten");
static_assert(checked_size{0}.round_up(32).value() == 0 && checked_size{33}.round_up(32).value() == 64 &&
              checked_size{64}.round_up(32).value() == 64);
static_assert(!checked_size{top}.round_up(32) && !checked_size{1}.round_up(0));
static_assert(intaglio::range_inside(0, 10, 10) && intaglio::range_inside(10, 0, 10) &&
              !intaglio::range_inside(1, 10, 10));
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

namespace {
constexpr checked_size none = checked_size::overflowed();
using result = std::optional<std::uint64_t>;

constexpr checked_size apply(char operation, checked_size a, checked_size b) {
  return operation == '+'   ? a + b
         : operation == '-' ? a - b
         : operation == '*' ? a * b
         : operation == '/' ? a / b
                            : a.round_up(b);
}
constexpr result value(checked_size of) { return of ? result(of.value()) : std::nullopt; }

/// Modified condition/decision coverage: below the first row of an operator, which is right in every condition, each
/// row is the first but for one condition, which it names and which alone decides; then the values on both sides of the
/// border.
struct row {
  char operation;
  checked_size a, b;
  result expected;
};
constexpr std::array table{
    row{'+', 1, 2, 3},
    row{'+', none, 2, {}},  // left overflowed before
    row{'+', 1, none, {}},  // right overflowed before
    row{'+', top, 2, {}},   // the sum
    row{'+', top, 0, top},
    row{'+', 0, top, top},
    row{'+', top - 1, 1, top},
    row{'+', top, 1, {}},
    row{'+', half, half - 1, top},
    row{'+', half, half, {}},
    row{'-', 3, 2, 1},
    row{'-', none, 2, {}},  // left
    row{'-', 3, none, {}},  // right
    row{'-', 1, 2, {}},     // below zero
    row{'-', 2, 2, 0},
    row{'-', top, top, 0},
    row{'-', 0, 1, {}},
    row{'-', 0, top, {}},
    row{'-', top - 1, top, {}},
    row{'-', top, 0, top},
    row{'*', 3, 2, 6},
    row{'*', none, 2, {}},  // left
    row{'*', 3, none, {}},  // right
    row{'*', half, 2, {}},  // the product
    row{'*', half, 0, 0},   // of zero, which divides nothing
    row{'*', half - 1, 2, top - 1},
    row{'*', top, 1, top},
    row{'*', 1, top, top},
    row{'*', root, root, {}},
    row{'*', root, root - 1, top - root + 1},
    row{'*', root + 1, root - 1, top},
    row{'*', top / 3, 3, top},
    row{'*', top / 3 + 1, 3, {}},
    row{'*', 0, 0, 0},
    row{'*', top, top, {}},
    row{'/', 6, 2, 3},
    row{'/', none, 2, {}},  // left
    row{'/', 6, none, {}},  // right
    row{'/', 6, 0, {}},     // by zero
    row{'/', top, 1, top},
    row{'/', top, top, 1},
    row{'/', top - 1, top, 0},
    row{'/', 0, 1, 0},
    row{'/', 0, 0, {}},
    row{'^', 33, 32, 64},
    row{'^', none, 32, {}},  // left
    row{'^', 33, none, {}},  // right
    row{'^', 33, 0, {}},     // to a multiple of zero
    row{'^', top, 32, {}},   // the next multiple
    row{'^', 0, 32, 0},
    row{'^', 1, 1, 1},
    row{'^', 32, 32, 32},
    row{'^', top - 31, 32, top - 31},
    row{'^', top - 30, 32, {}},
    row{'^', top, 1, top},
    row{'^', half, half, half},
    row{'^', half + 1, half, {}},
    row{'^', 1, top, top},
    row{'^', 2, top, {}},
};
static_assert([] {
  for (const row& each : table)
    if (value(apply(each.operation, each.a, each.b)) != each.expected) return false;
  return true;
}());

/// A row of boundary values for the predicates of extents, whose conditions are those of the sum and of the limit.
struct extent {
  checked_size offset, size;
  std::uint64_t whole;
  bool inside;
};
constexpr std::array extents{
    extent{2, 3, 5, true},          extent{none, 3, 5, false},  // the offset is no number
    extent{2, none, 5, false},                                  // the size is none
    extent{2, top - 1, 5, false},                               // the end wraps, to 0
    extent{2, 3, 4, false},                                     // the end is outside
    extent{0, 0, 0, true},          extent{5, 0, 5, true},     extent{6, 0, 5, false},
    extent{0, 5, 5, true},          extent{0, 6, 5, false},    extent{4, 1, 5, true},
    extent{5, 1, 5, false},         extent{top, 0, top, true}, extent{top, 1, top, false},
    extent{top - 1, 1, top, true},  extent{0, top, top, true}, extent{1, top, top, false},
    extent{half, half, top, false},
};
static_assert([] {
  for (const extent& each : extents)
    if (intaglio::range_inside(each.offset, each.size, each.whole) != each.inside) return false;
  return true;
}());
}  // namespace

// At run time too, with all pairs of border values against arithmetic of 128 bits.
TEST_CASE("sizes at the borders are right or absent", "[core][checked]") {
  __extension__ typedef unsigned __int128 wide;
  for (const row& each : table) {
    CAPTURE(each.operation, each.a.valid(), each.a.value(), each.b.valid(), each.b.value());
    CHECK(value(apply(each.operation, each.a, each.b)) == each.expected);
  }
  for (const extent& each : extents) {
    CAPTURE(each.offset.value(), each.size.value(), each.whole);
    CHECK(intaglio::range_inside(each.offset, each.size, each.whole) == each.inside);
  }
  CHECK(checked_size{5}.fits(5));
  CHECK_FALSE(checked_size{6}.fits(5));
  CHECK_FALSE(none.fits(5));  // though it has no value above 5
  constexpr std::array<std::uint64_t, 17> borders{
      0, 1, 2, 3, 31, 32, 33, root - 1, root, root + 1, top / 3, half - 1, half, half + 1, top - 31, top - 1, top};
  const auto fitting = [](bool defined, wide of) {
    return defined && of <= top ? result(static_cast<std::uint64_t>(of)) : std::nullopt;
  };
  for (const std::uint64_t a : borders)
    for (const std::uint64_t b : borders) {
      CAPTURE(a, b);
      const wide left = a, right = b;
      CHECK(value(checked_size{a} + b) == fitting(true, left + right));
      CHECK(value(checked_size{a} - b) == fitting(a >= b, left - right));
      CHECK(value(checked_size{a} * b) == fitting(true, left * right));
      CHECK(value(checked_size{a} / b) == fitting(b != 0, b == 0 ? 0 : left / right));
      // The sum before the division has to fit as well.
      CHECK(value(checked_size{a}.round_up(b)) ==
            fitting(b != 0 && left + right - 1 <= top, b == 0 ? 0 : (left + right - 1) / right * right));
      for (const std::uint64_t whole : borders) CHECK(intaglio::range_inside(a, b, whole) == (left + right <= whole));
    }
}

TEST_CASE("signed sums and products say where they do not fit") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                         least = std::numeric_limits<std::int64_t>::min();
  const std::int64_t edges[] = {least, least + 1, least / 2, -3, -2, -1, 0, 1, 2, 3, most / 2, most - 1, most};
  for (const std::int64_t a : edges)
    for (const std::int64_t b : edges) {
      INFO(a << ' ' << b);
      std::int64_t found = 0, expected = 0;
      CHECK(intaglio::sum_overflows(a, b, found) == __builtin_add_overflow(a, b, &expected));
      CHECK(found == expected);
      CHECK(intaglio::difference_overflows(a, b, found) == __builtin_sub_overflow(a, b, &expected));
      CHECK(found == expected);
      CHECK(intaglio::product_overflows(a, b, found) == __builtin_mul_overflow(a, b, &expected));
      CHECK(found == expected);
    }
}
