// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/walk_ffn.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/graph/layers/embedding.hpp"

using namespace intaglio;
using namespace intaglio::graph;

TEST_CASE("walk_ffn is gated_ffn, marked") {
  const auto traced = [](const auto& ffn) {
    ir::trace t;
    ffn.forward(t, embedding{"token_embd.weight", 512, 256}.forward(t));
    return t.graph();
  };
  const ir::graph dense = traced(gated_ffn<dtype::i2_s>{256, 1024, activation::relu_squared}), walked = traced(walk_ffn<dtype::i2_s>{256, 1024, activation::relu_squared});
  REQUIRE(walked.failure.empty());
  REQUIRE(walked.ops.size() == dense.ops.size());
  for (std::size_t i = 0; i < dense.ops.size(); ++i) {
    CHECK(walked.ops[i].kind == dense.ops[i].kind);
    CHECK_FALSE(dense.ops[i].walk);
    CHECK(walked.ops[i].walk == (i + 1 == dense.ops.size()));
  }
}
