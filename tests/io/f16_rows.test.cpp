// SPDX-License-Identifier: MIT
#include "intaglio/io/f16_rows.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace intaglio;

TEST_CASE("f16_rows: every f16 is widened as one by one, at any length and address", "[codec]") {
  std::vector<std::uint8_t> bytes(2 * 65536 + 1);
  for (std::size_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    std::memcpy(bytes.data() + 1 + 2 * i, &half, 2);
    REQUIRE(std::bit_cast<std::uint32_t>(io::f16_rows::widen(half)) ==
            std::bit_cast<std::uint32_t>(f32_from_f16(half)));
  }
  for (const std::size_t count : {std::size_t{65536}, std::size_t{65531}, std::size_t{7}, std::size_t{0}}) {
    std::vector<float> out(count + 1, 77.f);
    io::f32_from_f16_row(bytes.data() + 1, out.data(), count);
    bool same = true;
    for (std::size_t i = 0; i < count; ++i) {
      same &= std::bit_cast<std::uint32_t>(out[i]) ==
              std::bit_cast<std::uint32_t>(f32_from_f16(static_cast<std::uint16_t>(i)));
    }
    CHECK(same);
    CHECK(out[count] == 77.f);
  }
}

TEST_CASE("f16_rows: f32 of every kind is narrowed as one by one", "[codec]") {
  // Every exponent with fractions at, just below and just above the points where rounding turns.
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < (1u << 19); ++upper)  // sign, exponent and the 10 bits that stay
    for (const std::uint32_t lower : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x1FFFu})
      values.push_back(std::bit_cast<float>(upper << 13 | lower));
  values.resize(values.size() - 3);
  std::vector<std::uint8_t> out(2 * values.size() + 2, std::uint8_t{0xAB});
  io::f16_from_f32_row(values.data(), out.data() + 1, values.size());
  bool same = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half;
    std::memcpy(&half, out.data() + 1 + 2 * i, 2);
    same &= half == f16_from_f32(values[i]);
  }
  CHECK(same);
  CHECK((out.front() == 0xAB && out.back() == 0xAB));
}
