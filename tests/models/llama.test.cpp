// SPDX-License-Identifier: MIT
#include "intaglio/models/llama.hpp"

#include <catch2/catch_test_macros.hpp>

#include "traced_parameters.hpp"

using namespace intaglio;

namespace {
// As the models' pages state them.
static_assert(traced_parameters<models::llama<models::mistral_7b_v01_config>>() == 7'241'732'096);
static_assert(traced_parameters<models::llama<models::mistral_7b_v02_config, dtype::q4_1>>() == 7'241'732'096);
static_assert(traced_parameters<models::llama<models::llama_3_8b_config, dtype::q8_0>>() == 8'030'261'248);
static_assert(traced_parameters<models::llama<models::llama_31_8b_config, dtype::q4_k>>() == 8'030'261'248);
static_assert(traced_parameters<models::llama<models::llama_32_1b_config>>() == 1'235'814'400);
static_assert(traced_parameters<models::llama<models::stories260k_config, dtype::f32>>() == 260'032);
}  // namespace

TEST_CASE("Llama's block is 16 ops over 9 tensors", "[models]") {
  ir::trace t;
  models::llama<models::llama_31_8b_config>::graph().forward(t);
  REQUIRE(t.graph().failure.view() == "");
  std::size_t ops = 0, tensors = 0;
  for (const auto& o : t.graph().ops) {
    ops += o.where == ir::section::period;
    if (o.kind == ir::op_kind::rope)
      CHECK(o.rope == rope_parameters{500'000.f, {rope_type::llama3, 8.f, 1.f, 4.f, 8192}});
    if (o.kind == ir::op_kind::attention || o.kind == ir::op_kind::cache_write) CHECK(o.window == 0);
  }
  for (const auto& w : t.graph().weights) tensors += w.where == ir::section::period;
  CHECK(ops == 16);
  CHECK(tensors == 9);
}

TEST_CASE("every layer of Mistral 7B v0.1 has a window, none of v0.2", "[models]") {
  const auto window = [](const auto& model) {
    ir::trace t;
    model.forward(t);
    for (const auto& o : t.graph().ops)
      if (o.kind == ir::op_kind::attention) return o.window;
    return 1u;
  };
  CHECK(window(models::llama<models::mistral_7b_v01_config>::graph()) == 4096);
  CHECK(window(models::llama<models::mistral_7b_v02_config>::graph()) == 0);
}
