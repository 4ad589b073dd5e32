// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/rms_norm.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/graph/layers/embedding.hpp"

using namespace intaglio;
using namespace intaglio::graph;

TEST_CASE("a norm keeps the width, and its epsilon") {
  ir::trace t;
  const ir::value_id x = embedding{"token_embd.weight", 512, 256}.forward(t),
                     y = rms_norm{"attn_norm.weight", 1e-6f}.forward(t, x);
  const ir::graph& g = t.graph();
  CHECK(g.failure.empty());
  CHECK(g.values[static_cast<std::size_t>(y)].width == 256);
  CHECK(g.ops.back().kind == ir::op_kind::rms_norm);
  CHECK(g.ops.back().eps == 1e-6f);
}
