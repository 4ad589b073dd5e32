// SPDX-License-Identifier: MIT
#include "intaglio/io/codec_search.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

using namespace intaglio::io::codec_blocks;

TEST_CASE("codec_search: nearest rounds halves to even, one value and four alike", "[codec]") {
  for (int i = -4000; i <= 4000; ++i) {
    const float value = static_cast<float>(i) * 0.25f;
    REQUIRE(nearest(value) == static_cast<int>(std::nearbyint(value)));
    four_floats four;
    nearest(four_floats{value, value - 1.f, value + 1000.f, 0.f}, -7, 8, four);
    REQUIRE(four[0] == static_cast<float>(std::clamp(nearest(value), -7, 8)));
    REQUIRE(four[1] == static_cast<float>(std::clamp(nearest(value - 1.f), -7, 8)));
    REQUIRE(four[2] == (value + 1000.f >= 7.5f ? 8.f : static_cast<float>(std::clamp(nearest(value + 1000.f), -7, 8))));
    REQUIRE(four[3] == 0.f);
  }
}

TEST_CASE("codec_search: what a lane finds does not depend on its neighbours", "[codec]") {
  std::mt19937 random(5);
  std::array<float, 128> x;
  for (int round = 0; round < 200; ++round) {
    for (float& value : x) value = static_cast<float>(random()) * 0x1p-31f - 1.f;
    const affine_search together(x.data());
    const symmetric_search halves(x.data());
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::array<float, 128> alone;
      for (std::size_t i = 0; i < alone.size(); ++i) alone[i] = x[32 * lane + i % 32];
      const affine_search one(alone.data());
      REQUIRE((one.scale[0] == together.scale[lane] && one.least[0] == together.least[lane] &&
               one.inverse[3] == together.inverse[lane] && one.from[2] == together.from[lane]));
      for (std::size_t i = 0; i < 64; ++i) alone[i] = x[16 * lane + i % 16];
      const symmetric_search half(alone.data());
      REQUIRE((half.scale[1] == halves.scale[lane] && half.inverse[1] == halves.inverse[lane]));
    }
  }
}

TEST_CASE("codec_search: a searched scale loses no more than the plain one", "[codec]") {
  std::mt19937 random(6);
  std::array<float, 128> x;
  int gained = 0;
  for (int round = 0; round < 200; ++round) {
    for (float& value : x) value = static_cast<float>(random()) * 0x1p-31f - 0.7f;
    const affine_search found(x.data());
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const float* of = x.data() + 32 * lane;
      double squares = 0;
      for (std::size_t i = 0; i < 32; ++i) squares += static_cast<double>(of[i]) * of[i];
      const auto loss = [&](float scale, float least, float inverse, float from) {
        double sum = 0;
        for (std::size_t i = 0; i < 32; ++i) {
          const double off =
              static_cast<double>(scale) * std::clamp(nearest(inverse * (of[i] - from)), 0, 15) + least - of[i];
          sum += (std::sqrt(squares / 32) + std::fabs(of[i])) * off * off;
        }
        return sum;
      };
      const float least = std::min(0.f, *std::min_element(of, of + 32)),
                  step = (*std::max_element(of, of + 32) - least) / 15.f;
      const double plain = loss(step, least, 1.f / step, least),
                   searched = loss(found.scale[lane], found.least[lane], found.inverse[lane], found.from[lane]);
      REQUIRE(searched <= plain * 1.00001);
      gained += searched < 0.95 * plain ? 1 : 0;
    }
  }
  CHECK(gained > 200);  // of 800
}

TEST_CASE("codec_search: lanes of equal and of tiny values", "[codec]") {
  std::array<float, 128> x{};
  for (std::size_t i = 0; i < 32; ++i) x[32 + i] = -2.f;
  const affine_search found(x.data());
  CHECK((found.flat[0] != 0 && found.scale[0] == 0.f && found.least[0] == 0.f));
  CHECK((found.flat[1] != 0 && found.scale[1] == 0.f && found.least[1] == -2.f));
  x.fill(1e-16f);
  x[17] = -3.f;
  const symmetric_search signs(x.data());
  CHECK((signs.tiny[0] != 0 && signs.scale[0] == 0.f));
  CHECK(signs.tiny[1] == 0);
  CHECK(std::fabs(signs.scale[1] * -32.f + 3.f) < 0.1f);
}
