// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_rows.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <vector>

using intaglio::dtype;
using namespace intaglio::io;

static_assert(feature_row_bytes(dtype::i2_s, 64) == 16);
static_assert(feature_row_bytes(dtype::q4_0, 64) == 36);
static_assert(feature_type_from_name("ternary") == dtype::i2_s);
static_assert(!feature_type_from_name("i2_s") && !feature_type_from_name("tq1_0") && !feature_type_from_name("bcml1") &&
              !feature_type_from_name("u8"));
static_assert(feature_type_from_name("q6_k") == dtype::q6_k);

TEST_CASE("feature rows: ternary words hold every code in its bits", "[feature_index]") {
  std::vector<std::int8_t> codes(32), again(32);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(static_cast<int>(i * 7 % 3) - 1);
  std::array<std::byte, 8> words{};
  encode_ternary_words(codes, words);
  decode_ternary_words(words, again);
  CHECK(again == codes);
  CHECK_FALSE(find_feature_fault(dtype::i2_s, words));
  std::vector<float> values(32);
  decode_feature_rows(dtype::i2_s, words, 0.5f, values);
  for (std::size_t i = 0; i < codes.size(); ++i) CHECK(values[i] == 0.5f * static_cast<float>(codes[i]));
  // By hand: columns 0 and 5 of one word are +1, all others 0.
  std::vector<std::int8_t> two(16);
  two[0] = two[5] = 1;
  encode_ternary_words(two, std::span(words).first(4));
  std::uint32_t word;
  std::memcpy(&word, words.data(), 4);
  CHECK(word == 0x55555555u + 1u + (1u << 10));  // column 5: bit 8 * 1 + 2 * 1
}

TEST_CASE("feature rows: faults are found where they are", "[feature_index]") {
  std::array<std::byte, 12> words;
  words.fill(std::byte{0x55});
  words[9] = std::byte{0x75};  // a 3 in the third word
  const auto ternary = find_feature_fault(dtype::i2_s, words);
  REQUIRE(ternary);
  CHECK(ternary->byte == 8);
  CHECK(ternary->found == "ternary code 3");

  std::vector<float> values(9000, 1.f);
  const auto bytes_of = [&] { return std::as_bytes(std::span(values)); };
  CHECK_FALSE(find_feature_fault(dtype::f32, bytes_of()));
  values[8999] = std::numeric_limits<float>::infinity();
  CHECK(find_feature_fault(dtype::f32, bytes_of())->byte == 4 * 8999);
  values[4097] = std::numeric_limits<float>::quiet_NaN();
  CHECK(find_feature_fault(dtype::f32, bytes_of())->byte == 4 * 4097);
  CHECK(find_feature_fault(dtype::f32, bytes_of())->found == "NaN");

  std::array<std::byte, 3 * 34> blocks{};
  CHECK_FALSE(find_feature_fault(dtype::q8_0, blocks));
  blocks[2 * 34 + 1] = std::byte{0x7C};  // the scale of the third is infinite, and its codes are 0: NaN
  CHECK(find_feature_fault(dtype::q8_0, blocks)->byte == 2 * 34);
}
