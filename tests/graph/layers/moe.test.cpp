// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/moe.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;
using namespace intaglio::graph;

namespace {
constexpr auto of(std::uint32_t experts, std::uint32_t top_k) {
  return moe{linear<dtype::f32>{"ffn_gate_inp.weight", 64, experts},
             gated_experts<dtype::f16>{64, 96, experts, activation::gelu_tanh}, top_k};
}
}  // namespace

TEST_CASE("a mixture of experts chooses once and weighs what the chosen gave") {
  ir::trace t;
  const ir::value_id x = t.embedding("token_embd.weight", 16, 64);
  const ir::value_id y = of(6, 2).forward(t, x);
  const auto& g = t.graph();
  REQUIRE(g.failure.view() == "");
  CHECK(t.width(y) == 64);
  const auto& route = g.ops[2];
  CHECK(route.kind == ir::op_kind::route);
  CHECK(t.width(route.out) == 4);
  CHECK(t.type(route.out) == dtype::u32);
  for (const std::size_t i : {3u, 4u, 6u}) CHECK(g.ops[i].in[1] == route.out);
  CHECK(t.width(g.ops[3].out) == 2 * 96);
  CHECK(t.width(g.ops[6].out) == 2 * 64);
  CHECK(g.weights[2].rows == 6 * 96);
  CHECK(g.weights[4].rows == 6 * 64);
  CHECK(g.weights[4].columns == 96);
}

TEST_CASE("a mixture of experts that does not fit is one sentence") {
  const auto failure = [](const auto& layer) {
    ir::trace t;
    layer.forward(t, t.embedding("token_embd.weight", 16, 64));
    return std::string(t.graph().failure.view());
  };
  CHECK(
      failure(of(2, 3)) ==
      "ffn_gate_inp.weight: expected a choice of at least 1 and at most num_local_experts 2 experts a token, found 3");
  CHECK(
      failure(of(2, 0)) ==
      "ffn_gate_inp.weight: expected a choice of at least 1 and at most num_local_experts 2 experts a token, found 0");
  CHECK(failure(moe{linear<dtype::f32>{"ffn_gate_inp.weight", 64, 4},
                    gated_experts<dtype::f16>{64, 98, 4, activation::silu}, 2u}) ==
        "ffn_gate_exps.weight: expected rows of an expert in multiples of 4, found 98");
  CHECK(failure(moe{linear<dtype::f32>{"ffn_gate_inp.weight", 64, 4},
                    gated_experts<dtype::q8_0>{64, 100, 4, activation::silu}, 2u}) ==
        "ffn_down_exps.weight: expected columns in multiples of 32, found 100");
}
