// SPDX-License-Identifier: MIT
#include "intaglio/reference/canonical.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "shared.hpp"

namespace {

using namespace intaglio;

TEST_CASE("the butterfly adds lane v and v ^ 16 first, and 1 last") {
  std::array<float, 32> lanes{};
  lanes[0] = 1.0f, lanes[16] = 0x1p-24f, lanes[1] = 0x1p-24f;
  // (1 + 2^-24) rounds to 1 twice; the other order would keep 2^-23.
  CHECK(reference::butterfly(lanes) == 1.0f);
  lanes[17] = 0x1p-24f;  // now 1 and 17 meet before they reach lane 0
  CHECK(reference::butterfly(lanes) == 1.0f + 0x1p-23f);
}

TEST_CASE("elements i, i + 1 of one lane meet before other lanes") {
  std::vector<float> ones(512, 1.0f), x(512);
  x[0] = 1.0f, x[6] = 0x1p-24f, x[7] = 0x1p-24f;  // a6 + a7 = 2^-23 reaches the others whole
  CHECK(reference::dot(x, ones) == 1.0f + 0x1p-23f);
  x[7] = 0, x[8] = 0x1p-24f;  // lane 1
  CHECK(reference::dot(x, ones) == 1.0f);
  x[6] = 0, x[8] = 0, x[1] = 0x1p-24f;  // a0 + a1 rounds
  CHECK(reference::dot(x, ones) == 1.0f);
  x[1] = 0, x[256] = 0x1p-24f;  // the same accumulator, one round later
  CHECK(reference::dot(x, ones) == 1.0f);
}

TEST_CASE("a norm sums quads, then blocks of 128, then every 32nd block, then those") {
  // Squares of 2^-12 are lost beside 1 alone, not as a pair.
  constexpr std::size_t width = 128 * 40;
  const auto found = [](std::initializer_list<std::size_t> indices) {
    std::vector<float> x(width);
    x[0] = 1.0f;
    for (const std::size_t index : indices) x[index] = 0x1p-12f;
    return reference::inverse_rms(x, 0.0f);
  };
  const auto expected = [](float sum) { return 1.0f / std::sqrt(sum / static_cast<float>(width)); };
  REQUIRE(expected(1.0f) != expected(1.0f + 0x1p-23f));
  CHECK(found({1, 2}) == expected(1.0f));  // 1 + 2^-24 rounds before the other half of the quad comes
  CHECK(found({2, 3}) == expected(1.0f + 0x1p-23f));
  CHECK(found({4, 5, 6, 7}) == expected(1.0f + 0x1p-22f));  // a quad
  CHECK(found({64, 65, 66, 67}) == expected(1.0f + 0x1p-22f));
  CHECK(found({64, 32, 16, 8}) == expected(1.0f));                  // quads 16, 8, 4 and 2 come one at a time
  CHECK(found({128, 132, 136, 140}) == expected(1.0f + 0x1p-22f));  // a block
  CHECK(found({128 * 32, 128 * 33}) == expected(1.0f));  // block 32 joins block 0 before block 33 joins block 1
}

TEST_CASE("products are rounded before they are added") {
  const float a = 1.0f + 0x1p-12f;  // a * a = 1 + 2^-11 + 2^-24, of which the last is lost
  std::vector<float> l(257), r(257);
  l[0] = 1.0f, r[0] = -1.0f - 0x1p-11f, l[256] = a, r[256] = a;
  CHECK(reference::dot(l, r) == 0.0f);
  CHECK(reference::product(a, a) - (1.0f + 0x1p-11f) == 0.0f);
}

TEST_CASE("dot is a dot product", "[law]") {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const std::size_t width : {1u, 3u, 4u, 127u, 128u, 129u, 256u, 2560u, 6912u}) {
    std::vector<float> a(width), b(width);
    for (auto& v : a) v = uniform(random);
    for (auto& v : b) v = uniform(random);
    const double exact =
        std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>{}, [](double p, double q) { return p * q; });
    const double bound = 1e-6 * std::sqrt(static_cast<double>(width));
    CHECK(std::abs(reference::dot(a, b) - exact) < bound);
  }
}

TEST_CASE("rms_norm agrees with 0xBitNet's reference") {
  const auto vectors = nlohmann::json::parse(std::ifstream(shared("vectors/oxbitnet_ops.json")))["ops"]["rmsnorm"];
  const auto input = vectors["input"].get<std::vector<float>>(), weight = vectors["weight"].get<std::vector<float>>();
  const auto expected = vectors["output"].get<std::vector<float>>();
  std::vector<float> y(16);
  for (std::size_t token = 0; token < 2; ++token) {
    reference::rms_norm(std::span(input).subspan(token * 16, 16), weight, 1e-5f, y);
    for (std::size_t i = 0; i < 16; ++i) CHECK(std::abs(y[i] - expected[token * 16 + i]) < 2e-6f);
  }
}

TEST_CASE("elements are little-endian f16, bf16 and f32") {
  std::array<std::byte, 8> bytes{};
  reference::elements half(bytes, kernels::element::f16);
  CHECK(half.size() == 4);
  half.store(1, 1.0f);
  CHECK(bytes[2] == std::byte{0x00});
  CHECK(bytes[3] == std::byte{0x3C});
  CHECK(half[1] == 1.0f);
  reference::elements brain(bytes, kernels::element::bf16);
  brain.store(3, -1.0f);
  CHECK(bytes[6] == std::byte{0x80});
  CHECK(bytes[7] == std::byte{0xBF});
  CHECK(brain[3] == -1.0f);
  reference::elements single(bytes, kernels::element::f32);
  single.store(0, 0.1f);
  CHECK(single[0] == 0.1f);
  CHECK(single.size() == 2);
}

}  // namespace
