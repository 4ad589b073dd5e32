// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/linear.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

#include "intaglio/graph/layers/embedding.hpp"

using namespace intaglio;
using namespace intaglio::graph;

namespace {
constexpr embedding table{"token_embd.weight", 512, 256};
template <class Layer>
std::vector<ir::op_kind> kinds_after_table(const Layer& layer) {
  ir::trace t;
  layer.forward(t, table.forward(t));
  std::vector<ir::op_kind> out;
  for (const ir::op& each : t.graph().ops) out.push_back(each.kind);
  return {out.begin() + 1, out.end()};
}
}  // namespace

TEST_CASE("ternary products take int8 activations, all others what comes") {
  using enum ir::op_kind;
  CHECK(kinds_after_table(linear<dtype::i2_s>{"w.weight", 256, 128}) == std::vector{quantize, matmul});
  CHECK(kinds_after_table(linear<dtype::f16>{"w.weight", 256, 128}) == std::vector{matmul});
}

TEST_CASE("a product is as wide as its rows, and refuses another input") {
  ir::trace t;
  const ir::value_id x = table.forward(t), y = linear<dtype::f16>{"w.weight", 256, 96}.forward(t, x);
  CHECK(t.graph().values[static_cast<std::size_t>(y)].width == 96);
  CHECK(t.graph().failure.empty());
  linear<dtype::f16>{"v.weight", 128, 96}.forward(t, x);
  CHECK(t.graph().failure.view() == "v.weight: expected linear input width 128, found 256");
}

TEST_CASE("the head's logits are the graph's output") {
  ir::trace t;
  const ir::value_id logits = lm_head{"token_embd.weight", 512, 256}.forward(t, table.forward(t));
  CHECK(t.graph().output == logits);
  CHECK(t.graph().weights.size() == 1);  // tied
  CHECK(t.graph().values[static_cast<std::size_t>(logits)].width == 512);
}
