// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/self_attention.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

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
