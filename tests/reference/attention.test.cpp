// SPDX-License-Identifier: MIT
#include "intaglio/reference/attention.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "shared.hpp"

namespace {

using namespace intaglio;

/// [positions, kv_heads, head_dim] to the cache's [kv_heads, context, head_dim].
std::vector<std::byte> cache_of(const reference::attention_shape& shape, std::span<const float> rows) {
  const std::size_t d = shape.head_dim, positions = rows.size() / d / shape.kv_heads;
  std::vector<std::byte> bytes(std::size_t{shape.kv_heads} * shape.context * d * reference::elements::size_bytes(shape.cache_element), std::byte{0x7B});
  reference::elements cache(bytes, shape.cache_element);
  for (std::size_t p = 0; p < positions; ++p)
    for (std::size_t head = 0; head < shape.kv_heads; ++head)
      for (std::size_t c = 0; c < d; ++c) cache.store((head * shape.context + p) * d + c, rows[(p * shape.kv_heads + head) * d + c]);
  return bytes;
}

TEST_CASE("attention agrees with 0xBitNet's reference") {
  const auto vectors = nlohmann::json::parse(std::ifstream(shared("vectors/oxbitnet_ops.json")))["ops"]["attention_gqa_causal"];
  const auto q = vectors["Q"].get<std::vector<float>>(), k = vectors["K"].get<std::vector<float>>(), v = vectors["V"].get<std::vector<float>>();
  const auto expected = vectors["output"].get<std::vector<float>>();
  const reference::attention_shape shape{4, 2, 8, 5, kernels::element::f32};
  std::vector<float> output(64);
  reference::attention(shape, q, cache_of(shape, k), cache_of(shape, v), 2, 2, output);
  for (std::size_t i = 0; i < output.size(); ++i) CHECK(std::abs(output[i] - expected[i]) < 2e-6f);
}

TEST_CASE("attention is a softmax over all positions, whatever the blocks", "[law]") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::uint32_t position : {0u, 30u, 31u, 32u, 63u, 64u, 99u}) {
    const reference::attention_shape shape{6, 2, 32, 104, kernels::element::f16};
    std::vector<float> q(2 * 6 * 32), k((position + 2) * 2 * 32), v(k.size()), output(q.size());
    for (auto& x : q) x = 2 * normal(random);
    for (auto* list : {&k, &v})
      for (auto& x : *list) x = f32_from_f16(f16_from_f32(normal(random)));
    reference::attention(shape, q, cache_of(shape, k), cache_of(shape, v), position, 2, output);
    for (std::size_t token = 0; token < 2; ++token)
      for (std::size_t head = 0; head < 6; ++head) {
        double total = 0;
        std::vector<double> sums(32);
        for (std::size_t p = 0; p <= position + token; ++p) {
          double score = 0;
          for (std::size_t c = 0; c < 32; ++c) score += double{q[(token * 6 + head) * 32 + c]} * k[(p * 2 + head / 3) * 32 + c];
          const double e = std::exp(score / std::sqrt(32.0));
          total += e;
          for (std::size_t c = 0; c < 32; ++c) sums[c] += e * v[(p * 2 + head / 3) * 32 + c];
        }
        for (std::size_t c = 0; c < 32; ++c) CHECK(std::abs(output[(token * 6 + head) * 32 + c] - sums[c] / total) < 2e-6);
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
  const auto cache = cache_of(shape, rows);
  reference::attention(shape, q, cache, cache, 30, 3, chunk);
  for (std::uint32_t token = 0; token < 3; ++token) {
    reference::attention(shape, std::span<const float>(q).subspan(token * 16, 16), cache, cache, 30 + token, 1, one);
    for (std::size_t i = 0; i < 16; ++i) CHECK(one[i] == chunk[token * 16 + i]);
  }
}

}  // namespace
