// SPDX-License-Identifier: MIT
#include "intaglio/io/han_characters.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::io;

TEST_CASE("han_characters: ranges are in order; kana and Hangul are other scripts") {
  for (std::size_t i = 1; i < han_characters.size(); ++i) CHECK(han_characters[i - 1].last < han_characters[i].first);
  CHECK((is_han(0x4E00) && is_han(0x3007) && is_han(0x20000) && is_han(0x323AF)));
  CHECK((!is_han(0x3042) && !is_han(0xAC00) && !is_han(U'a') && !is_han(0x323B0)));
}
