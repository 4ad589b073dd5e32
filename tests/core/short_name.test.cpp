// SPDX-License-Identifier: MIT
#include "intaglio/core/short_name.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sstream>
#include <string>
#include <type_traits>

using intaglio::short_name;

static_assert(short_name<4>{}.empty() && short_name<4>{} == "");
static_assert(short_name<4>{"wide"}.size() == 4 && short_name<4>{"wide"} == "wide");
static_assert(short_name<8>{"wide"}.view() == "wide" && short_name<8>{"wide"} != "width");
static_assert(std::is_constructible_v<short_name<4>, const char (&)[5]>);
static_assert(!std::is_constructible_v<short_name<4>, const char (&)[6]>, "a longer literal does not compile");
static_assert(sizeof(short_name<23>) == 24 && std::is_trivially_copyable_v<short_name<23>>);

TEST_CASE("short_name: its text is in the object, so a copy has its own") {
  const short_name<8> first{"width"};
  short_name<8> second = first;
  second.letters[0] = 'W';
  CHECK(std::string(first) == "width");
  CHECK(std::string(second) == "Width");
  CHECK(std::string_view(second).data() == second.letters);
  CHECK((std::ostringstream() << first << ' ' << second).str() == "width Width");
}
