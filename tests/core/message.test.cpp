// SPDX-License-Identifier: MIT
#include "intaglio/core/message.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <limits>
#include <string>

#include "intaglio/core/dtype.hpp"

namespace {

using intaglio::message;
using intaglio::text;

static_assert(intaglio::are_equal("blk", "blk") && !intaglio::are_equal("blk", "bl") &&
              !intaglio::are_equal("blk", "bla"));
static_assert(intaglio::text<8>{"abcdefg"}.view() == "abcdefg" && intaglio::text<8>{"abcdefgh"}.view() == "abcd...");
static_assert(message("a ", 3, ' ', -7, 'x', 1e-5f, ' ', 500'000.f, ' ', 0.07f, " ", intaglio::dtype::i2_s, true) ==
              "a 3 -7x1e-5 500000 0.07 i2_strue");
static_assert(message(0.1f) == "0.1");
static_assert(message(1.0f) == "1");
static_assert(message(-0.0625) == "-0.0625");
static_assert(message(0.99999994f) == "0.99999994");
static_assert(message(3.4028235e38f) == "3.4028235e38");
static_assert(message(123456.789) == "123456.789");
static_assert(message(1e15f) == "1e15");
static_assert(message(1.5e-7f) == "1.5e-7");
static_assert(message(std::numeric_limits<float>::infinity()) == "inf");
static_assert(message(std::numeric_limits<float>::quiet_NaN()) == "nan");
static_assert(message(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
static_assert(message(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
static_assert(message(std::uint8_t{200}) == "200");
static_assert(text<8>("abcdefg") == "abcdefg");
static_assert(text<8>("abcdefgh") == "abcd...");
static_assert(text<8>("abcdefghijkl") == "abcd...");
static_assert(text<16>{}.append("one", ' ', 2).append(text<8>(" three")) == "one 2 three");

// Equal sentences are one template argument, however they came about.
template <auto Text>
struct tag {};
static_assert(std::is_same_v<tag<message("n = ", 12)>, tag<message("n = 12")>>);

static_assert(intaglio::reason<text<>{}>::model_fits);
static_assert(!intaglio::reason<text<>{"blk.0: no"}>::model_fits);

TEST_CASE("decimals read back as the number they came from") {
  std::uint32_t bits = 1;
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const float number = std::bit_cast<float>(bits & 0x7FFFFFFFu);
    if (!(number >= 1e-30f && number <= 1e30f)) continue;
    const auto printed = message(number);
    if (std::strtof(std::string(printed.view()).c_str(), nullptr) != number) ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace
