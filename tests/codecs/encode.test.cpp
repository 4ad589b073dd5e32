// SPDX-License-Identifier: MIT
// What encoders lose, and what their searches find.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>
#include <tuple>

#include "intaglio/codecs/decode.hpp"

using namespace intaglio::codecs;

namespace {

/// Fills 256 numbers of at most about 1. Kinds: magnitudes that differ by sub-block, of one sign, a spike among small
/// ones, sub-blocks of zeros, all equal, of the largest magnitude with changing signs, and a largest number beside one
/// as large of the other sign.
constexpr int kinds = 7;
void fill(int kind, std::mt19937& random, std::array<float, 256>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float v = static_cast<float>(random()) * 0x1p-31f - 1.f;
    x[i] = kind == 0    ? std::ldexp(v, static_cast<int>(i / 32) - 7)
           : kind == 1  ? std::fabs(v)
           : kind == 2  ? (i == 100 ? 1.f : v * 1e-3f)
           : kind == 3  ? (i / 32 % 2 == 0 ? 0.f : v)
           : kind == 4  ? -0.7f
           : kind == 5  ? (random() % 2 == 0 ? 1.f : -1.f)
           : i % 32 < 2 ? (i % 2 == 0 ? -1.f : 1.f)
                        : v;
  }
}

template <class C>
void check_bound() {
  std::mt19937 random(17);
  std::array<float, 256> x, again;
  std::array<std::uint8_t, 256 / C::elements * C::bytes> blocks;
  float worst = 0;
  for (int kind = 0; kind < kinds; ++kind)
    for (int round = 0; round < 200; ++round) {
      fill(kind, random, x);
      for (float& value : x) value = std::ldexp(value, 8 + round % 5);  // so that no f16 is subnormal or infinite
      REQUIRE(encode_blocks(C::type, x.data(), x.size() / C::elements, blocks.data()));
      REQUIRE(decode_blocks(C::type, blocks.data(), x.size() / C::elements, again.data()));
      for (std::size_t begin = 0; begin < x.size(); begin += C::elements) {
        float largest = 0, apart = 0;
        for (std::size_t i = begin; i < begin + C::elements; ++i) {
          largest = std::max(largest, std::fabs(x[i]));
          apart = std::max(apart, std::fabs(x[i] - again[i]));
        }
        if (largest > 0) worst = std::max(worst, apart / largest);
        else REQUIRE(apart == 0);
      }
    }
  INFO(intaglio::name(C::type) << ": found " << worst);
  CHECK(worst <= C::largest_error * 1.0001f);  // sums are rounded to f32
  CHECK(worst >= C::largest_error / 2);        // a bound that says something
}

}  // namespace

TEST_CASE("codecs: what is encoded differs by at most the codec's bound", "[codecs]") {
  std::size_t encoders = 0;
  [&]<class... C>(std::tuple<C...>*) {
    const auto check = [&]<class Each>() {
      if constexpr (requires { Each::largest_error; }) check_bound<Each>(), ++encoders;
      else CHECK_FALSE(is_encoded(Each::type));
    };
    (check.template operator()<C>(), ...);
  }(static_cast<all*>(nullptr));
  CHECK(encoders == 12);
}

TEST_CASE("codecs: nearest rounds halves to even, one value and four alike", "[codecs]") {
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

TEST_CASE("codecs: what a lane finds does not depend on its neighbours", "[codecs]") {
  std::mt19937 random(5);
  std::array<float, 128> x;
  for (int round = 0; round < 200; ++round) {
    for (float& value : x) value = static_cast<float>(random()) * 0x1p-31f - 1.f;
    const q4_k_search together(x.data());
    const q6_k_search halves(x.data());
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::array<float, 128> alone;
      for (std::size_t i = 0; i < alone.size(); ++i) alone[i] = x[32 * lane + i % 32];
      const q4_k_search one(alone.data());
      REQUIRE((one.scale[0] == together.scale[lane] && one.least[0] == together.least[lane] &&
               one.inverse[3] == together.inverse[lane] && one.from[2] == together.from[lane]));
      for (std::size_t i = 0; i < 64; ++i) alone[i] = x[16 * lane + i % 16];
      const q6_k_search half(alone.data());
      REQUIRE((half.scale[1] == halves.scale[lane] && half.inverse[1] == halves.inverse[lane]));
    }
  }
}

TEST_CASE("codecs: a searched scale loses no more than the plain one", "[codecs]") {
  std::mt19937 random(6);
  std::array<float, 128> x;
  int gained = 0;
  for (int round = 0; round < 200; ++round) {
    for (float& value : x) value = static_cast<float>(random()) * 0x1p-31f - 0.7f;
    const q4_k_search found(x.data());
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

TEST_CASE("codecs: lanes of equal and of tiny values", "[codecs]") {
  std::array<float, 128> x{};
  for (std::size_t i = 0; i < 32; ++i) x[32 + i] = -2.f;
  const q4_k_search found(x.data());
  CHECK((found.flat[0] != 0 && found.scale[0] == 0.f && found.least[0] == 0.f));
  CHECK((found.flat[1] != 0 && found.scale[1] == 0.f && found.least[1] == -2.f));
  x.fill(1e-16f);
  x[17] = -3.f;
  const q6_k_search signs(x.data());
  CHECK((signs.tiny[0] != 0 && signs.scale[0] == 0.f));
  CHECK(signs.tiny[1] == 0);
  CHECK(std::fabs(signs.scale[1] * -32.f + 3.f) < 0.1f);
}
