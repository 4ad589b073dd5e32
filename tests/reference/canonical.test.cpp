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
  std::vector<float> ones(256, 1.0f), x(256);
  x[0] = 1.0f, x[2] = 0x1p-24f, x[3] = 0x1p-24f;  // a2 + a3 = 2^-23 reaches a0 + a1 whole
  CHECK(reference::dot<4>(x, ones) == 1.0f + 0x1p-23f);
  x[2] = 0, x[1] = 0x1p-24f;  // a0 + a1 rounds
  CHECK(reference::dot<4>(x, ones) == 1.0f);
  x[3] = 0, x[128] = 0x1p-24f;  // the same accumulator, one round later
  CHECK(reference::dot<4>(x, ones) == 1.0f);
  std::fill(x.begin(), x.end(), 0.0f);
  x[0] = 1.0f, x[6] = 0x1p-24f, x[7] = 0x1p-24f;  // lane 1 of four elements, lane 0 of eight: either way they meet first
  CHECK(reference::dot<8>(x, ones) == 1.0f + 0x1p-23f);
  x[7] = 0, x[8] = 0x1p-24f;  // lane 1 of eight
  CHECK(reference::dot<8>(x, ones) == 1.0f);
}

TEST_CASE("products are rounded before they are added") {
  const float a = 1.0f + 0x1p-12f;  // a * a = 1 + 2^-11 + 2^-24, of which the last is lost
  std::vector<float> l(129), r(129);
  l[0] = 1.0f, r[0] = -1.0f - 0x1p-11f, l[128] = a, r[128] = a;
  CHECK(reference::dot<4>(l, r) == 0.0f);
  CHECK(reference::product(a, a) - (1.0f + 0x1p-11f) == 0.0f);
}

TEST_CASE("dot is a dot product", "[law]") {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const std::size_t width : {1u, 3u, 4u, 127u, 128u, 129u, 256u, 2560u, 6912u}) {
    std::vector<float> a(width), b(width);
    for (auto& v : a) v = uniform(random);
    for (auto& v : b) v = uniform(random);
    const double exact = std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>{}, [](double p, double q) { return p * q; });
    const double bound = 1e-6 * std::sqrt(static_cast<double>(width));
    CHECK(std::abs(reference::dot<4>(a, b) - exact) < bound);
    CHECK(std::abs(reference::dot<8>(a, b) - exact) < bound);
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
