// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/gated_ffn.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/ungated_ffn.hpp"

using namespace intaglio;
using namespace intaglio::graph;

TEST_CASE("gate and up share one quantisation of their input") {
  ir::trace t;
  const ir::value_id x = embedding{"token_embd.weight", 512, 256}.forward(t);
  const ir::value_id y = gated_ffn<dtype::i2_s>{256, 1024, activation::relu_squared}.forward(t, x);
  const ir::graph& g = t.graph();
  CHECK(g.failure.empty());
  CHECK(g.values[static_cast<std::size_t>(y)].width == 1024);
  CHECK(std::ranges::count(g.ops, ir::op_kind::quantize, &ir::op::kind) == 1);
  CHECK(std::ranges::count(g.ops, ir::op_kind::matmul, &ir::op::kind) == 2);
  CHECK(g.ops.back().kind == ir::op_kind::gated);
  CHECK(g.ops.back().act == activation::relu_squared);
}

TEST_CASE("xIELU has parameters of the layer, in units without a gate alone") {
  ir::trace t, other;
  const ir::value_id x = embedding{"token_embd.weight", 512, 256}.forward(t);
  const ir::value_id y = ungated_ffn<dtype::f32>{256, 1024, activation::xielu}.forward(t, x);
  const ir::graph& g = t.graph();
  CHECK(g.failure.empty());
  CHECK(g.values[static_cast<std::size_t>(y)].width == 1024);
  const ir::weight& own = g.weights[static_cast<std::size_t>(g.ops.back().weight)];
  CHECK((own.name.view() == "ffn_act.weight" && own.rows == 1 && own.columns == 4));
  const ir::value_id z = embedding{"token_embd.weight", 512, 256}.forward(other);
  gated_ffn<dtype::f32>{256, 1024, activation::xielu}.forward(other, z);
  CHECK(other.graph().failure.view().find("found xIELU") != std::string_view::npos);
}
