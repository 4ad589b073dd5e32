// SPDX-License-Identifier: MIT
#include "intaglio/core/array_view.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

using intaglio::array_view;

namespace {
struct element {
  int value = 0;
};
using view = array_view<const element>;
constexpr element numbers[] = {{1}, {2}, {3}, {4}};

constexpr int sum(view of) {
  int out = 0;
  for (const element& each : of) out += each.value;
  return out;
}

static_assert(sum({}) == 0 && view{}.empty() && view{}.data() == nullptr);
static_assert(sum(numbers) == 10 && sum({numbers + 1, 2}) == 5 && view(numbers).size() == 4);
static_assert(sum(std::array<element, 2>{{{5}, {6}}}) == 11 && sum(std::vector<element>{{7}, {8}}) == 15);
static_assert(sum(view(numbers).first(3)) == 6 && sum(view(numbers).last(1)) == 4);
static_assert(sum(view(numbers).subspan(2)) == 7 && sum(view(numbers).subspan(1, 2)) == 5);
static_assert(view(numbers).subspan(4).empty() && view(numbers).first(0).empty() && view(numbers).last(0).empty());
static_assert(view(numbers).front().value == 1 && view(numbers).back().value == 4 && view(numbers)[2].value == 3);
static_assert([] {
  std::vector<element> all(3);
  for (element& each : array_view<element>(all)) each.value = 2;
  return sum(array_view<element>(all));  // a view of constant elements from one of others
}() == 6);

// As std::span: no view that writes to constant elements, of other elements, or of what has no elements in a row.
static_assert(std::is_convertible_v<std::vector<element>&, array_view<element>>);
static_assert(!std::is_constructible_v<array_view<element>, const std::vector<element>&>);
static_assert(!std::is_constructible_v<array_view<element>, view>);
static_assert(!std::is_constructible_v<view, std::vector<int>&> && !std::is_constructible_v<view, int>);
static_assert(!std::is_constructible_v<view, std::string> && !std::is_constructible_v<view, element>);
static_assert(std::is_trivially_copyable_v<view> && sizeof(view) == sizeof(std::span<const element>));

// Either becomes the other, so that what has a std::span can be handed on.
static_assert(std::is_convertible_v<std::span<const element>, view> &&
              std::is_convertible_v<view, std::span<const element>>);
static_assert(std::contiguous_iterator<decltype(view{}.begin())>);
}  // namespace

TEST_CASE("a view has the elements of its container, not copies", "[core][array_view]") {
  std::vector<element> all{{1}, {2}, {3}};
  const array_view<element> some = array_view<element>(all).subspan(1);
  some[0].value = 9;
  CHECK(all[1].value == 9);
  CHECK(some.data() == all.data() + 1);
  CHECK(some.size() == 2);
  const std::span<const element> standard = view(some);
  CHECK(standard.data() == some.data());
  CHECK(standard.size() == some.size());
}
