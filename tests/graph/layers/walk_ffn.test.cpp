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
  const ir::graph dense = traced(gated_ffn<dtype::i2_s>{256, 1024, activation::relu_squared}),
                  walked = traced(walk_ffn<dtype::i2_s>{256, 1024, activation::relu_squared});
  REQUIRE(walked.failure.empty());
  REQUIRE(walked.ops.size() == dense.ops.size());
  for (std::size_t i = 0; i < dense.ops.size(); ++i) {
    CHECK(walked.ops[i].kind == dense.ops[i].kind);
    CHECK_FALSE(dense.ops[i].walk);
    CHECK(walked.ops[i].walk == (i + 1 == dense.ops.size()));
  }
}

TEST_CASE("traced is a model's own FFN, marked: of ternary weights the exact walk") {
  const auto traced_op = [](const auto& ffn) {
    ir::trace t;
    ffn.forward(t, embedding{"token_embd.weight", 512, 256}.forward(t));
    REQUIRE_FALSE(t.failed());
    return t.graph().ops.back();
  };
  const ir::op ternary = traced_op(traced<32>::ffn<dtype::i2_s, dtype::i8>{256, 1024, activation::relu_squared}),
               dense = traced_op(traced<5>::ffn<dtype::q4_0, dtype::f32>{256, 1024, activation::silu}),
               sparse = traced_op(traced_walk<7, 100>::ffn<dtype::f16, dtype::f32>{256, 1024, activation::silu});
  CHECK((ternary.traced == 32 && ternary.walk));
  CHECK((dense.traced == 5 && !dense.walk && dense.nearest == 0));
  CHECK((sparse.traced == 7 && sparse.nearest == 100));
  ir::trace none;
  traced<65>::ffn<dtype::q4_0, dtype::f32>{256, 1024, activation::silu}.forward(
      none, embedding{"token_embd.weight", 512, 256}.forward(none));
  CHECK(none.graph().failure.view() == "ffn: expected a trace of at least 1 and at most 64 features, found 65");
}
