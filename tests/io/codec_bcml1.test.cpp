// SPDX-License-Identifier: MIT
#include "intaglio/io/codec_bcml1.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../shared.hpp"
#include "files.hpp"

using namespace intaglio::io;

static_assert(bcml1_layout{64, 32}.bytes() == 1280 && bcml1_layout{65, 32}.bytes() == 2560 &&
              bcml1_layout{1, 33}.bytes() == 2560);
static_assert(bcml1_layout{70, 40}.row_words() == 10 && bcml1_layout{70, 40}.at(0, 1) == 64 &&
              bcml1_layout{70, 40}.at(65, 3) == 640 + 192 + 1);

TEST_CASE("codec_bcml1: blocks of CGML decode to what it says", "[bcml1]") {
  std::size_t cases = 0;
  std::ifstream file(shared("vectors/bcml1_blocks.json"));
  const auto document = nlohmann::json::parse(file);
  for (const auto& each : document.at("cases")) {
    // The block in row 3 of a panel whose other rows are zero words.
    const bcml1_layout layout{64, 32};
    std::vector<std::uint32_t> words(320);
    for (std::size_t i = 0; i < 5; ++i)
      words[static_cast<std::size_t>(layout.at(3, i))] = each.at("u32").at(i).get<std::uint32_t>();
    std::vector<float> values(4 * 32);
    decode_bcml1(std::as_bytes(std::span(words)), layout, 2, 4, values);
    const auto expected = each.at("decoded").get<std::vector<double>>();
    double largest = 1;
    for (const double value : expected) largest = std::max(largest, std::fabs(value));
    for (std::size_t i = 0; i < 32; ++i) {
      REQUIRE(values[i] == 0.f);
      REQUIRE(std::fabs(values[32 + i] - expected[i]) <= 1e-6 * largest);  // printed with 9 digits, its sum fused
      REQUIRE(values[64 + i] == 0.f);
    }
    ++cases;
  }
  CHECK(cases == 12);
}

TEST_CASE("codec_bcml1: any rows, also across panels and with a partial block", "[bcml1]") {
  const bcml1_layout layout{130, 75};
  std::vector<std::uint32_t> words(static_cast<std::size_t>(layout.bytes() / 4));
  for (std::uint64_t row = 0; row < layout.rows; ++row)
    for (std::uint64_t block = 0; block < 3; ++block) {
      words[static_cast<std::size_t>(layout.at(row, 5 * block))] = 0x3C00u | (0x4000u << 16);  // 1 and 2
      for (std::uint64_t word = 0; word < 4; ++word)
        for (std::uint64_t k = 0; k < 8; ++k)
          words[static_cast<std::size_t>(layout.at(row, 5 * block + 1 + word))] |=
              static_cast<std::uint32_t>((row + 3 * (32 * block + 8 * word + k)) % 16) << (4 * k);
    }
  for (const auto& [row0, count] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 130}, {63, 2}, {5, 1}, {60, 70}, {129, 1}, {130, 0}}) {
    std::vector<float> values(static_cast<std::size_t>(count * layout.columns));
    decode_bcml1(std::as_bytes(std::span(words)), layout, row0, count, values);
    for (std::uint64_t row = 0; row < count; ++row)
      for (std::uint64_t column = 0; column < layout.columns; ++column)
        REQUIRE(values[static_cast<std::size_t>(row * layout.columns + column)] ==
                static_cast<float>((row0 + row + 3 * column) % 16) + 2.f);
  }
}

TEST_CASE("codec_bcml1: sizes that do not fit together", "[bcml1]") {
  const bcml1_layout layout{64, 64};
  const bytes tensor(static_cast<std::size_t>(layout.bytes()));
  std::vector<float> values(64);
  CHECK_NOTHROW(decode_bcml1(tensor, layout, 63, 1, values));
  CHECK_THROWS_AS(decode_bcml1(tensor, layout, 64, 1, values), intaglio::argument_error);
  CHECK_THROWS_AS(decode_bcml1(tensor, layout, ~std::uint64_t{0}, 2, values), intaglio::argument_error);
  CHECK_THROWS_AS(decode_bcml1(tensor, layout, 0, 2, values), intaglio::argument_error);
  CHECK_THROWS_AS(decode_bcml1(std::span(tensor).first(2559), layout, 0, 1, values), intaglio::argument_error);
}

TEST_CASE("codec_bcml1: rows as Q4_1 have the same values, bit for bit", "[bcml1]") {
  const bcml1_layout layout{70, 64};
  std::vector<std::uint32_t> words(static_cast<std::size_t>(layout.bytes() / 4));
  std::uint32_t random = 7;
  for (auto& word : words) word = (random = random * 1664525u + 1013904223u) >> 1;
  for (std::uint64_t row = 0; row < layout.rows; ++row)
    for (std::uint64_t block = 0; block < 2; ++block)
      words[static_cast<std::size_t>(layout.at(row, 5 * block))] &= 0x37FFB7FFu;  // finite f16 values
  const auto tensor = std::as_bytes(std::span(words));
  std::vector<float> expected(66 * 64), found(66 * 64);
  bytes blocks(66 * 2 * 20);
  decode_bcml1(tensor, layout, 3, 66, expected);
  bcml1_as_q4_1(tensor, layout, 3, 66, blocks);
  for (std::size_t row = 0; row < 66; ++row)
    decode_row(intaglio::dtype::q4_1, std::span<const std::byte>(blocks).subspan(row * 40, 40),
               std::span(found).subspan(row * 64, 64));
  CHECK(found == expected);
  CHECK_THROWS_AS(bcml1_as_q4_1(tensor, layout, 5, 66, blocks), intaglio::argument_error);
  CHECK_THROWS_AS(bcml1_as_q4_1(tensor, bcml1_layout{70, 63}, 3, 66, blocks), intaglio::argument_error);
}
