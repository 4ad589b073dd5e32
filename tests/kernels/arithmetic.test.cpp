// SPDX-License-Identifier: MIT
// The kernels' exp, log, sine and cosine against f64.
#include "intaglio/kernels/arithmetic.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <numbers>

namespace arithmetic = intaglio::kernels::arithmetic;

namespace {
double relative(double found, double expected) { return std::abs(found - expected) / std::abs(expected); }
}  // namespace

TEST_CASE("exp and exp2 are within 1e-7 of f64 over all that they take, and end as they say", "[law]") {
  double of_e = 0, of_two = 0;
  for (int i = -86'999; i < 88'000; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    of_e = std::max(of_e, relative(static_cast<double>(arithmetic::exp(x)), std::exp(static_cast<double>(x))));
  }
  for (int i = -126'000; i <= 127'000; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    of_two = std::max(of_two, relative(static_cast<double>(arithmetic::exp2(x)), std::exp2(static_cast<double>(x))));
  }
  CHECK(of_e < 1e-7);
  CHECK(of_two < 1e-7);
  CHECK(arithmetic::exp(0.0f) == 1.0f);
  CHECK(arithmetic::exp(-87.01f) == 0.0f);
  CHECK(arithmetic::exp(-std::numeric_limits<float>::infinity()) == 0.0f);
  CHECK(arithmetic::exp(std::numeric_limits<float>::infinity()) == arithmetic::exp(88.0f));
  for (int n = -126; n <= 127; ++n) CHECK(arithmetic::exp2(static_cast<float>(n)) == std::ldexp(1.0f, n));
}

TEST_CASE("log is within 2e-7 of f64, absolutely below 1 in size and relatively above", "[law]") {
  double worst = 0;
  for (int exponent = -126; exponent <= 127; ++exponent)
    for (int i = 0; i < 257; ++i) {
      const float x = std::ldexp(1.0f + static_cast<float>(i) / 257.0f, exponent);
      const double expected = std::log(static_cast<double>(x));
      worst = std::max(
          worst, std::abs(static_cast<double>(arithmetic::log(x)) - expected) / std::max(1.0, std::abs(expected)));
    }
  CHECK(worst < 2e-7);
  CHECK(arithmetic::log(1.0f) == 0.0f);
}

TEST_CASE("sine and cosine of a turn's parts are within 1.5e-7 of f64; quarters are exact", "[law]") {
  double worst = 0;
  for (std::uint64_t phase = 0; phase < std::uint64_t{1} << 32; phase += 15'485'863) {
    const double angle = static_cast<double>(phase) * 0x1p-31 * std::numbers::pi;
    const auto found = arithmetic::of_turn(static_cast<std::uint32_t>(phase));
    worst = std::max({worst, std::abs(static_cast<double>(found.sine) - std::sin(angle)),
                      std::abs(static_cast<double>(found.cosine) - std::cos(angle))});
  }
  CHECK(worst < 1.5e-7);
  for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
    const auto found = arithmetic::of_turn(quarter << 30);
    CHECK(found.sine == (quarter == 1 ? 1.0f : quarter == 3 ? -1.0f : 0.0f));
    CHECK(found.cosine == (quarter == 0 ? 1.0f : quarter == 2 ? -1.0f : 0.0f));
  }
}

TEST_CASE("a position's phase is the fraction of its turns, at any position and frequency", "[law]") {
  constexpr std::uint32_t positions[]{0, 1, 2, 31, 4095, 131'071, 131'072, (1u << 24) - 1};
  for (const std::uint32_t position : positions)
    for (int exponent = -31; exponent <= 0; ++exponent)
      for (const float mantissa : {1.0f, 1.2345678f, 1.9999999f}) {
        const float frequency = std::ldexp(mantissa, exponent);
        if (frequency > 1) continue;
        const long double turns = static_cast<long double>(position) * static_cast<long double>(frequency) /
                                  (2 * std::numbers::pi_v<long double>);
        const long double fraction = turns - std::floor(turns);
        const auto expected = static_cast<std::uint32_t>(static_cast<std::uint64_t>(fraction * 0x1p32L));
        const std::uint32_t found = arithmetic::rope_phase(position, frequency),
                            apart = std::min(found - expected, expected - found);
        INFO("position " << position << ", frequency " << frequency);
        CHECK(apart <= 2);  // of 2^32: what the turns of 24 bits of position leave of a long double's 64
      }
}
