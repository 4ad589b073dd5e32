// SPDX-License-Identifier: MIT
#include "intaglio/graph/layers/latent_attention.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/families/planned_family.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/plan/verify.hpp"

using namespace intaglio;
using namespace intaglio::graph;

namespace {

constexpr decoder_config config{.model_type = architecture::deepseek2,
                                .hidden_size = 256,
                                .num_attention_heads = 6,
                                .num_key_value_heads = 1,
                                .head_dim = 48,
                                .rotary_dim = 16,
                                .q_lora_rank = 32,
                                .kv_lora_rank = 128,
                                .v_head_dim = 40};

ir::graph graph_of(const decoder_config& c) {
  ir::trace t;
  latent_attention<dtype::f16>{c}.forward(t, embedding{"token_embd.weight", 512, 256}.forward(t));
  return t.graph();
}

// A model's type is engraved as others are.
constexpr const plan::table& engraved =
    plan::engraved<models::glm_47_flash<dtype::q8_0>, plan::profiles::portable, 512>::table;
static_assert(engraved.decode.block(1).size() == 18 && engraved.resident_decode.resident.empty());
static_assert(engraved.caches[0].key_bytes == 2 * 512 * 576 && engraved.caches[0].value_bytes == 2 * 512 * 512);

}  // namespace

TEST_CASE("latent attention caches a latent vector with a rotated key after it", "[graph]") {
  const ir::graph g = graph_of(config);
  CHECK(g.failure.empty());
  const auto attention = std::ranges::find(g.ops, ir::op_kind::attention, &ir::op::kind),
             write = std::ranges::find(g.ops, ir::op_kind::cache_write, &ir::op::kind);
  REQUIRE((attention != g.ops.end() && write != g.ops.end()));
  CHECK((attention->heads == 6 && attention->kv_heads == 1 && attention->head_dim == 144));
  CHECK((attention->value_dim == 128 && write->value_dim == 128 && write->head_dim == 144));
  CHECK(std::abs(attention->scale - 1 / std::sqrt(48.f)) < 1e-7f);
  CHECK(g.values[static_cast<std::size_t>(attention->out)].width == 6 * 128);
  CHECK(g.values[static_cast<std::size_t>(g.ops.back().out)].width == 6 * 40);
  const auto shape = [&](std::string_view name) {
    for (const ir::weight& w : g.weights)
      if (w.name.view() == name) return std::pair{w.rows, w.columns};
    return std::pair{0u, 0u};
  };
  CHECK(shape("attn_q_nope.weight") == std::pair{6u * 32, 32u});
  CHECK(shape("attn_q_rope.weight") == std::pair{6u * 16, 32u});
  CHECK(shape("attn_kv_latent.weight") == std::pair{128u, 256u});
  CHECK(shape("attn_k_b.weight") == std::pair{6u * 128, 32u});
  CHECK(shape("attn_v_b.weight") == std::pair{6u * 40, 128u});
}

TEST_CASE("latent attention without a latent vector or rotated channels is refused", "[graph]") {
  decoder_config c = config;
  c.kv_lora_rank = 96;
  CHECK(graph_of(c).failure.view() == "latent_attention: expected kv_lora_rank in multiples of 64, found 96");
  c = config;
  c.rotary_dim = 0;
  CHECK(graph_of(c).failure.view() ==
        "latent_attention: expected rotated channels in multiples of 8, fewer than head_dim 48, found 0");
}

TEST_CASE("a layer with latent attention is a chain in which one dispatch rotates, normalises and caches", "[graph]") {
  for (const auto* c : {&models::deepseek_v2_lite_config, &models::glm_47_flash_config}) {
    const plan::planned made = families::planned_of(*c, {dtype::q8_0, dtype::q8_0, dtype::q8_0}, "latent",
                                                    plan::profiles::portable, 2048, {.slot_count = 8});
    const plan::table& t = made.table();
    CHECK(plan::verify(t).empty());
    CHECK((t.resident_decode.resident.empty() && t.resident_batch.resident.empty()));
    std::vector<kernels::kernel> chain;
    for (const plan::dispatch& d : t.decode.block(1)) chain.push_back(d.kernel);
    using enum kernels::kernel;
    std::vector<kernels::kernel> expected{route, matmul, matmul, matmul, matmul, matmul, turn, attention, matmul};
    if (c->q_lora_rank != 0) expected.insert(expected.begin() + 1, matmul);
    chain.resize(expected.size());
    CHECK(chain == expected);
    for (const auto& cache : {t.caches[0], t.caches[1]})
      CHECK((cache.key_bytes == std::uint64_t{2} * 2048 * 576 && cache.value_bytes == std::uint64_t{2} * 2048 * 512));
  }
}
