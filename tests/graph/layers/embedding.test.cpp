// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/embedding.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;
using namespace intaglio::graph;

static_assert(source_layer<embedding> && !layer<embedding>, "a model starts with it, and nothing stands before it");

TEST_CASE("an embedding is as wide as the stream and names its table") {
  ir::trace t;
  const ir::value_id x = embedding{"token_embd.weight", 512, 256}.forward(t);
  const ir::graph& g = t.graph();
  CHECK(g.failure.empty());
  REQUIRE(g.ops.size() == 1);
  CHECK(g.ops[0].kind == ir::op_kind::embedding);
  CHECK(g.values[static_cast<std::size_t>(x)].width == 256);
  CHECK(g.weights[0].name.view() == "token_embd.weight");
  CHECK((g.weights[0].rows == 512 && g.weights[0].columns == 256));
}
