// SPDX-License-Identifier: MIT
#include "intaglio/platform/terminal.hpp"

#include <catch2/catch_test_macros.hpp>

namespace {

using intaglio::platform::columns_of_character;

TEST_CASE("a terminal has columns and rows, also where there is none", "[platform]") {
  const auto size = intaglio::platform::size_of_terminal();
  CHECK(size.columns > 0);
  CHECK(size.rows > 0);
}

TEST_CASE("characters take no, one or two columns", "[platform]") {
  CHECK(columns_of_character(U'a') == 1);
#if !defined(_WIN32)
  CHECK(columns_of_character(U'\u65e5') == 2);
  CHECK(columns_of_character(U'\u0301') == 0);
#endif
  CHECK(columns_of_character(U'\u00e9') == 1);
  CHECK(columns_of_character(0x110000) == 1);  // no character
}

}  // namespace
