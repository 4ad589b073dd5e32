// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/self_attention.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>

#include "intaglio/graph/layers/embedding.hpp"

using namespace intaglio;
using namespace intaglio::graph;

namespace {
constexpr decoder_config config{
    .hidden_size = 256, .num_attention_heads = 8, .num_key_value_heads = 2, .head_dim = 32, .rope_theta = 500'000.f};
}

TEST_CASE("queries and keys are turned, values are not, and keys and values go to the cache") {
  ir::trace t;
  const ir::value_id x = embedding{"token_embd.weight", 512, 256}.forward(t),
                     y = self_attention<dtype::i2_s>{config}.forward(t, x);
  const ir::graph& g = t.graph();
  CHECK(g.failure.empty());
  CHECK(g.values[static_cast<std::size_t>(y)].width == config.q_size());
  CHECK(std::ranges::count(g.ops, ir::op_kind::rope, &ir::op::kind) == 2);
  const auto write = std::ranges::find(g.ops, ir::op_kind::cache_write, &ir::op::kind);
  REQUIRE(write != g.ops.end());
  for (const std::size_t side : {0u, 1u})
    CHECK(g.values[static_cast<std::size_t>(write->in[side])].width == config.kv_size());
  CHECK(g.ops.back().kind == ir::op_kind::attention);
  CHECK((g.ops.back().heads == 8 && g.ops.back().kv_heads == 2 && g.ops.back().head_dim == 32));
}

TEST_CASE("heads that cannot be shared are refused") {
  decoder_config odd = config;
  odd.num_key_value_heads = 3;
  ir::trace t;
  self_attention<dtype::i2_s>{odd}.forward(t, embedding{"token_embd.weight", 512, 256}.forward(t));
  CHECK(t.graph().failure.view() ==
        "self_attention: expected num_attention_heads in multiples of num_key_value_heads 3, found 8");
}

TEST_CASE("a factor of YaRN's sines and cosines is one of scores, squared") {
  decoder_config scaled = config;
  scaled.rope_scaling = {rope_type::yarn, 4.f, 1.f, 32.f, 4096, 1.25f};
  const auto scale = [](const decoder_config& c) {
    ir::trace t;
    self_attention<dtype::f16>{c}.forward(t, embedding{"token_embd.weight", 512, 256}.forward(t));
    return t.graph().ops.back().scale;
  };
  CHECK(scale(config) == 0);  // the kernel's own, 1 / sqrt(head_dim)
  CHECK(std::abs(scale(scaled) - 1.5625f / std::sqrt(32.f)) < 1e-7f);
  scaled.query_pre_attn_scalar = 64;
  CHECK(std::abs(scale(scaled) - 1.5625f / 8) < 1e-7f);
}

TEST_CASE("biases of q, k and v stand in front of norms") {
  ir::trace t;
  self_attention<dtype::f16, dtype::f32, qk_norm::rms_all, qkv_bias::added>{config}.forward(
      t, embedding{"token_embd.weight", 512, 256}.forward(t));
  const ir::graph& g = t.graph();
  CHECK(g.failure.empty());
  CHECK(std::ranges::count(g.ops, ir::op_kind::bias, &ir::op::kind) == 3);
  const auto norm = std::ranges::find(g.ops, ir::op_kind::rms_norm, &ir::op::kind);
  REQUIRE(norm != g.ops.end());
  CHECK(g.weights[static_cast<std::size_t>(norm->weight)].columns == config.q_size());
  CHECK(std::ranges::find(g.ops, ir::op_kind::bias, &ir::op::kind) < norm);
}
