// SPDX-License-Identifier: MIT
#include "intaglio/core/letters_between.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::letters_between;

TEST_CASE("letters between: those that are changed, added or left out", "[core]") {
  CHECK(letters_between("", "") == 0);
  CHECK(letters_between("temperature", "temperature") == 0);
  CHECK(letters_between("temprature", "temperature") == 1);
  CHECK(letters_between("/lod", "/load") == 1);
  CHECK(letters_between("ab", "ba") == 2);
  CHECK(letters_between("", "abc") == 3);
  CHECK(letters_between("kitten", "sitting") == 3);
}
