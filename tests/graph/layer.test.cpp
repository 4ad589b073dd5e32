// SPDX-License-Identifier: MIT
#include "intaglio/graph/layer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"

using namespace intaglio;
using namespace intaglio::graph;

namespace {
constexpr rms_norm norm{"norm.weight", 1e-5f};
constexpr linear<dtype::i2_s> projection{"w.weight", 256, 256};
static_assert(layer<rms_norm> && layer<linear<dtype::f16>> && !layer<embedding> && source_layer<embedding> &&
              !layer<int>);
// Piping is associative: one flat list however it is written.
static_assert(std::is_same_v<decltype((norm | projection) | norm), decltype(norm | (projection | norm))>);

constexpr std::size_t ops(const auto& model) {
  ir::trace t;
  model.forward(t);
  return t.graph().ops.size();
}
constexpr auto table = embedding{"token_embd.weight", 512, 256};
static_assert(ops(table | norm) == 2);
static_assert(ops(table | residual(norm | projection)) == 1 + 1 + 2 + 1, "a ternary product quantises its input");
static_assert(ops(table | repeat(4, residual(norm | projection))) ==
                  ops(table | repeat(40, residual(norm | projection))),
              "one block, however often");
}  // namespace

TEST_CASE("a residual adds the branch to its input", "[graph]") {
  ir::trace t;
  (table | residual(norm)).forward(t);
  const auto& add = t.graph().ops.back();
  CHECK(add.kind == ir::op_kind::add);
  CHECK(add.in[0] == t.graph().ops.front().out);
  CHECK(add.in[1] == t.graph().ops[1].out);
}

TEST_CASE("every sixth block is of another kind", "[graph]") {
  ir::trace t;
  (table | repeat(7, every(6, residual(norm | projection), residual(norm)))).forward(t);
  CHECK_FALSE(t.failed());
  CHECK(t.graph().pattern == layer_pattern{6, {0, 0, 0, 0, 0, 1}});
  CHECK(t.graph().ops.size() == 1 + 4 + 2);
  ir::trace wide;
  (table | repeat(7, every(300, residual(norm | projection), residual(norm)))).forward(wide);
  CHECK(wide.graph().failure.view() == "repeat: expected a pattern of at least 1 layer and at most 256, found 300");
}
