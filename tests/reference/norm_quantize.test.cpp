// SPDX-License-Identifier: MIT
#include "intaglio/reference/norm_quantize.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "shared.hpp"

namespace {

using namespace intaglio;

TEST_CASE("halves round to even, the largest becomes 127") {
  const std::vector<float> y{127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127.0f, 0.0f};  // s is exactly 1
  std::vector<std::int8_t> q(y.size());
  const auto factors = reference::quantize(y, q);
  CHECK(q == std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, -127, 0});
  CHECK(factors == reference::factors{1.0f, 2});
}

TEST_CASE("zeros quantise to zeros with the floor of the maximum") {
  const std::vector<float> y(8, 0.0f);
  std::vector<std::int8_t> q(8, 1);
  CHECK(reference::quantize(y, q) == reference::factors{1e-5f / 127.0f, 0});
  CHECK(q == std::vector<std::int8_t>(8, 0));
}

TEST_CASE("values that are no numbers end in range") {
  const std::vector<float> y{std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1.0f};
  std::vector<std::int8_t> q(3);
  const auto factors = reference::quantize(y, q);
  CHECK(q == std::vector<std::int8_t>{-128, -128, 0});
  CHECK(std::isnan(factors.inverse_scale));  // they do not get lost
}

TEST_CASE("quantisation agrees with 0xBitNet's reference") {
  const auto vectors =
      nlohmann::json::parse(std::ifstream(shared("vectors/oxbitnet_ops.json")))["ops"]["quantize_absmax_int8"];
  const auto input = vectors["input"].get<std::vector<float>>();
  const auto expected = vectors["q"].get<std::vector<int>>();
  std::vector<std::int8_t> q(16);
  for (std::size_t token = 0; token < 2; ++token) {
    const auto factors = reference::quantize(std::span(input).subspan(token * 16, 16), q);
    CHECK(std::abs(factors.inverse_scale - vectors["scales"][token].get<float>()) < 1e-8f);
    for (std::size_t i = 0; i < 16; ++i) CHECK(q[i] == expected[token * 16 + i]);
  }
}

TEST_CASE("every token is normalised and quantised for itself", "[law]") {
  constexpr std::size_t width = 384, tokens = 5;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(width * tokens), w(width);
  for (auto& v : x) v = 3 * normal(random);
  for (auto& v : w) v = 1 + normal(random) / 4;
  std::vector<std::int8_t> q(width * tokens);
  std::vector<reference::factors> factors(tokens);
  reference::norm_quantize(x, w, width, 1e-5f, q, factors);
  for (std::size_t token = 0; token < tokens; ++token) {
    double square = 0, largest = 0;
    for (std::size_t i = 0; i < width; ++i) square += double{x[token * width + i]} * x[token * width + i];
    const double r = 1 / std::sqrt(square / width + 1e-5);
    for (std::size_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(x[token * width + i] * r * w[i]));
    CHECK(std::abs(factors[token].inverse_scale * 127 / largest - 1) < 1e-6);
    for (std::size_t i = 0; i < width; ++i)
      CHECK(std::abs(q[token * width + i] - x[token * width + i] * r * w[i] * 127 / largest) < 0.5 + 1e-4);
    CHECK(factors[token].sum == std::accumulate(q.begin() + static_cast<std::ptrdiff_t>(token * width),
                                                q.begin() + static_cast<std::ptrdiff_t>((token + 1) * width), 0));
  }
}

}  // namespace
