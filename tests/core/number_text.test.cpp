// SPDX-License-Identifier: MIT
#include "intaglio/core/number_text.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <limits>

using intaglio::number_of_text;
using intaglio::number_text;

TEST_CASE("numbers are written as people write them") {
  CHECK(number_text(500'000.f) == "500000");
  CHECK(number_text(1e-5f) == "1e-05");
  CHECK(number_text(1e9f) == "1e+09");
  CHECK(number_text(0.1f) == "0.1");
  CHECK(number_text(-2.5f) == "-2.5");
  CHECK(number_text(0.f) == "0");
  CHECK(number_text(std::numeric_limits<float>::infinity()) == "inf");
  CHECK(number_text(std::numeric_limits<float>::quiet_NaN()) == "nan");
}

TEST_CASE("numbers read back as they were") {
  std::uint32_t bits = 1;
  int wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const float number = std::bit_cast<float>(bits);
    if (number == number && std::strtof(number_text(number).c_str(), nullptr) != number) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a text is a number as a whole or not at all") {
  CHECK(number_of_text("1.5") == 1.5);
  CHECK(number_of_text("-0.25") == -0.25);
  CHECK(number_of_text("1e3") == 1000.0);
  CHECK(number_of_text("0.1") == 0.1);
  CHECK(number_of_text("17976931348623157e292") == std::numeric_limits<double>::max());
  for (const char* const none : {"", " 1", "1 ", "+1", "1,5", "1.5x", "0x10", "inf", "nan", "-", "1e", "1e400", "--1"})
    CHECK_FALSE(number_of_text(none));
}
