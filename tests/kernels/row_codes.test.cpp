// SPDX-License-Identifier: MIT
#include "intaglio/kernels/row_codes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace intaglio;

TEST_CASE("row codes keep their promise", "[kernels][head]") {
  std::mt19937 random(3);
  std::vector<std::int8_t> codes(64);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> row(64);
    const float size = std::ldexp(1.0f, static_cast<int>(random() % 60) - 30);
    for (float& x : row) x = (static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f) * size;
    if (round % 3 == 0) row[5] = -size;
    const double scale = kernels::row_codes(row, codes);
    for (std::size_t i = 0; i < row.size(); ++i) {
      REQUIRE(std::abs(static_cast<double>(row[i]) - scale * codes[i]) <= 0.501 * scale);
      REQUIRE(std::abs(static_cast<double>(row[i])) <= 127.001 * scale);
    }
  }
  std::vector<float> row(64, 0.0f);
  CHECK(kernels::row_codes(row, codes) == 0);
  for (const float odd :
       {1e-13f, 1e13f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    row[7] = odd;
    CHECK(kernels::row_codes(row, codes) == std::numeric_limits<float>::infinity());
  }
}
