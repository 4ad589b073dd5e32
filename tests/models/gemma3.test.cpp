// SPDX-License-Identifier: MIT
#include "intaglio/models/gemma3.hpp"

#include <catch2/catch_test_macros.hpp>

#include "traced_parameters.hpp"

using namespace intaglio;

namespace {
// Parameters of the checkpoints' tensors without vision.
static_assert(traced_parameters<models::gemma3<models::gemma3_270m_config>>() == 268'098'176);
static_assert(traced_parameters<models::gemma3<models::gemma3_1b_config, dtype::q8_0>>() == 999'885'952);
static_assert(traced_parameters<models::gemma3<models::gemma3_4b_config>>() == 3'880'263'168);
static_assert(models::embedding_scale(2560, dtype::bf16) == 50.5f &&
              models::embedding_scale(2560, dtype::f16) == 50.596443f &&
              models::embedding_scale(256, dtype::f32) == 16);
}  // namespace

TEST_CASE("Gemma 3 traces a windowed block and one that sees everything", "[models]") {
  ir::trace t;
  models::gemma3<models::gemma3_4b_config>::graph().forward(t);
  const ir::graph& g = t.graph();
  REQUIRE(g.failure.view() == "");
  CHECK(g.layers == 34);
  REQUIRE(g.pattern.kinds() == 2);
  CHECK(g.pattern.count(0, 34) == 29);
  CHECK(g.pattern.count(1, 34) == 5);
  for (std::uint32_t layer = 0; layer < 34; ++layer)
    CHECK(models::gemma3_4b_config.is_windowed(layer) == (g.pattern(layer) == 0));
  REQUIRE(g.block_ends.size() == 2);
  CHECK(g.block_ends[1] == g.stream_out);
  std::size_t tensors = 0, ops[2]{};
  for (const auto& o : g.ops) {
    if (o.where != ir::section::period) continue;
    ++ops[o.block];
    const bool windowed = o.block == 0;
    if (o.kind == ir::op_kind::rope)
      CHECK(o.rope == (windowed ? rope_parameters{10'000.f} : rope_parameters{1'000'000.f, {rope_type::linear, 8.f}}));
    if (o.kind == ir::op_kind::attention || o.kind == ir::op_kind::cache_write)
      CHECK(o.window == (windowed ? 1024u : 0u));
  }
  CHECK(ops[0] == 20);
  CHECK(ops[1] == 20);
  for (const auto& w : g.weights) tensors += w.where == ir::section::period;
  CHECK(tensors == 13);  // both kinds name the same
  CHECK(g.ops.front().scale == 50.5f);
}
