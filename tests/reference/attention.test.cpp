// SPDX-License-Identifier: MIT
#include "intaglio/reference/attention.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "shared.hpp"

namespace {

using namespace intaglio;

/// Copies [positions, kv_heads, head_dim] to a layer's cache, whose unwritten parts are noise.
std::vector<std::byte> cache_of(const reference::attention_shape& shape, std::span<const float> rows, bool are_keys) {
  const std::uint32_t d = shape.head_dim, positions = static_cast<std::uint32_t>(rows.size()) / d / shape.kv_heads;
  const auto elements = are_keys ? kernels::key_cache_elements : kernels::value_cache_elements;
  const auto index = are_keys ? kernels::key_cache_index : kernels::value_cache_index;
  std::vector<std::byte> bytes(
      elements(shape.kv_heads, d, shape.context) * reference::elements::size_bytes(shape.cache_element),
      std::byte{0x7B});
  reference::elements cache(bytes, shape.cache_element);
  for (std::uint32_t p = 0; p < positions; ++p)
    for (std::uint32_t head = 0; head < shape.kv_heads; ++head)
      for (std::uint32_t c = 0; c < d; ++c)
        cache.store(index(head, p, c, d, shape.context), rows[(std::size_t{p} * shape.kv_heads + head) * d + c]);
  return bytes;
}
std::vector<std::byte> keys_of(const reference::attention_shape& shape, std::span<const float> rows) {
  return cache_of(shape, rows, true);
}
std::vector<std::byte> values_of(const reference::attention_shape& shape, std::span<const float> rows) {
  return cache_of(shape, rows, false);
}

TEST_CASE("keys are in octets of positions and chunks of channels, each offset once", "[law]") {
  for (const std::uint32_t context : {1u, 8u, 13u, 40u}) {
    std::vector<int> seen(kernels::key_cache_elements(2, 24, context));
    for (std::uint32_t head = 0; head < 2; ++head)
      for (std::uint32_t p = 0; p < context; ++p)
        for (std::uint32_t c = 0; c < 24; ++c) ++seen.at(kernels::key_cache_index(head, p, c, 24, context));
    CHECK(std::count(seen.begin(), seen.end(), 1) == 2 * 24 * static_cast<std::ptrdiff_t>(context));
    CHECK(std::count(seen.begin(), seen.end(), 0) == 2 * 24 * static_cast<std::ptrdiff_t>((8 - context % 8) % 8));
  }
  CHECK(kernels::key_cache_index(0, 1, 0, 24, 16) == 8);
  CHECK(kernels::key_cache_index(0, 0, 8, 24, 16) == 64);
  CHECK(kernels::key_cache_index(0, 8, 0, 24, 16) == 8 * 24);
  CHECK(kernels::key_cache_index(1, 0, 0, 24, 16) == 16 * 24);
}

TEST_CASE("attention agrees with 0xBitNet's reference") {
  const auto vectors =
      nlohmann::json::parse(std::ifstream(shared("vectors/oxbitnet_ops.json")))["ops"]["attention_gqa_causal"];
  const auto q = vectors["Q"].get<std::vector<float>>(), k = vectors["K"].get<std::vector<float>>(),
             v = vectors["V"].get<std::vector<float>>();
  const auto expected = vectors["output"].get<std::vector<float>>();
  const reference::attention_shape shape{4, 2, 8, 5, kernels::element::f32};
  std::vector<float> output(64);
  reference::attention(shape, q, keys_of(shape, k), values_of(shape, v), 2, 2, output);
  for (std::size_t i = 0; i < output.size(); ++i) CHECK(std::abs(output[i] - expected[i]) < 2e-6f);
}

TEST_CASE("attention is a softmax over all positions, whatever the spans", "[law]") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const std::array<float, 6> sinks{0.5f, -3.f, 7.f, 1.25f, 0.f, -0.5f};
  for (const std::uint32_t position : {0u, 6u, 7u, 63u, 64u, 254u, 255u, 256u, 300u, 513u}) {
    reference::attention_shape shape{6, 2, 32, 517, kernels::element::f16};
    if (position % 2 == 0) shape.softcap = 1.5f;
    if (position % 3 == 0) shape.sinks = sinks;
    std::vector<float> q(2 * 6 * 32), k((position + 2) * 2 * 32), v(k.size()), output(q.size());
    for (auto& x : q) x = 2 * normal(random);
    for (auto* list : {&k, &v})
      for (auto& x : *list) x = f32_from_f16(f16_from_f32(normal(random)));
    reference::attention(shape, q, keys_of(shape, k), values_of(shape, v), position, 2, output);
    for (std::size_t token = 0; token < 2; ++token)
      for (std::size_t head = 0; head < 6; ++head) {
        double total = 0;
        std::vector<double> sums(32);
        for (std::size_t p = 0; p <= position + token; ++p) {
          double score = 0;
          for (std::size_t c = 0; c < 32; ++c)
            score += double{q[(token * 6 + head) * 32 + c]} * k[(p * 2 + head / 3) * 32 + c];
          score /= std::sqrt(32.0);
          if (shape.softcap != 0) score = double{shape.softcap} * std::tanh(score / double{shape.softcap});
          const double e = std::exp(score);
          total += e;
          for (std::size_t c = 0; c < 32; ++c) sums[c] += e * v[(p * 2 + head / 3) * 32 + c];
        }
        if (!shape.sinks.empty()) total += std::exp(double{sinks[head]});
        for (std::size_t c = 0; c < 32; ++c)
          CHECK(std::abs(output[(token * 6 + head) * 32 + c] - sums[c] / total) < 2e-6);
      }
  }
}

TEST_CASE("a token's attention is the same alone and inside a chunk") {
  const reference::attention_shape shape{2, 1, 8, 40, kernels::element::f32};
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> q(3 * 16), rows(40 * 8), chunk(q.size()), one(16);
  for (auto& x : q) x = normal(random);
  for (auto& x : rows) x = normal(random);
  const auto keys = keys_of(shape, rows), values = values_of(shape, rows);
  reference::attention(shape, q, keys, values, 30, 3, chunk);
  for (std::uint32_t token = 0; token < 3; ++token) {
    reference::attention(shape, std::span<const float>(q).subspan(token * 16, 16), keys, values, 30 + token, 1, one);
    for (std::size_t i = 0; i < 16; ++i) CHECK(one[i] == chunk[token * 16 + i]);
  }
}

}  // namespace
