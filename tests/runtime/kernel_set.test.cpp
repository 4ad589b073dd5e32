// SPDX-License-Identifier: MIT
// Launches of products by matrices, which no CPU driver runs: their tiles cover all rows and tokens, and a pass over
// fewer rows has its own.
#include "intaglio/runtime/kernel_set.hpp"

#include <catch2/catch_test_macros.hpp>

#include "gpu/checked_device.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {

constexpr decoder_config one_layer{.model_type = architecture::llama,
                                   .hidden_size = 256,
                                   .intermediate_size = 768,
                                   .num_hidden_layers = 1,
                                   .num_attention_heads = 8,
                                   .num_key_value_heads = 2,
                                   .head_dim = 32,
                                   .vocab_size = 1024,
                                   .max_position_embeddings = 1024,
                                   .rope_theta = 500'000.f,
                                   .hidden_act = activation::silu,
                                   .tie_word_embeddings = false};

}  // namespace

TEST_CASE("products by matrices cover all rows and tokens of the pass, others keep the plan's workgroups") {
  const checked_device on;
  const runtime::kernel_set with(on.device, {.few_matrix = true}), without(on.device, {});
  for (const std::uint32_t slot_count : {3u, 8u, 16u, 40u}) {
    const plan::planned made = plan::planned::of<models::llama<one_layer, dtype::q8_0, dtype::q8_0, dtype::f32>>(
        plan::profiles::portable, 128, {.slot_count = slot_count});
    const plan::sequence& batch = made.table().batch;
    std::size_t products = 0;
    for (const auto part : batch.recorded())
      for (const plan::dispatch& call : part) {
        CHECK(without.rows_of(call).empty());
        CHECK(without.groups_of(call) == call.groups);
        const bool whole = slot_count % 8 == 0, makes = call.kernel == kernels::kernel::fixed;
        for (const std::uint32_t rows : {0u, 1u, 8u, 16u, 32u}) {
          CHECK_FALSE(without.takes_tiles(call, rows));
          if (rows <= slot_count)
            CHECK(with.takes_tiles(call, rows) == (whole && (rows != 0 ? rows : slot_count) <= 16 &&
                                                   (makes || call.kernel == kernels::kernel::matmul_few)));
        }
        const std::vector<std::uint32_t> all_passes = slot_count == 40   ? std::vector<std::uint32_t>{8, 16, 32}
                                                      : slot_count == 16 ? std::vector<std::uint32_t>{8}
                                                                         : std::vector<std::uint32_t>{};
        if (makes) CHECK(with.rows_of(call) == all_passes);
        if (call.kernel != kernels::kernel::matmul_few || !whole) {
          CHECK_FALSE(with.takes_matrices(call));
          CHECK(with.groups_of(call) == call.groups);
          CHECK(with.groups_of(call, 1, slot_count)[1] == std::max(1u, call.groups[1] / slot_count));
          continue;
        }
        ++products;
        const std::uint32_t rows = call.specialization[kernels::matmul_few_interface.specialization_index("rows")];
        std::vector<std::uint32_t> passes = with.rows_of(call);
        CHECK(passes == all_passes);
        passes.push_back(slot_count);
        for (const std::uint32_t tokens : passes) {
          const kernels::few_tile by =
              tokens <= 16 ? kernels::tiled_few_tile(tokens) : kernels::few_matrix_tile(call.kernel, rows, tokens);
          const auto groups = with.groups_of(call, tokens == slot_count ? 0 : tokens, slot_count);
          CHECK(groups ==
                std::array<std::uint32_t, 3>{(rows + by.rows - 1) / by.rows, (tokens + by.tokens - 1) / by.tokens, 1});
        }
      }
    CHECK(products == (slot_count == 3 ? 0 : 5));
  }
}

TEST_CASE(
    "a prompt's products by fragments: tiles that the shader takes, which cover all; halves in the product's order") {
  const checked_device on;
  const runtime::kernel_set with(on.device, {.half_matrix = true, .few_halves = true, .half_fragments = true}),
      without(on.device, {.half_matrix = true, .few_halves = true});
  const auto look = [&]<dtype codec>() {
    const plan::planned made =
        plan::planned::of<models::llama<one_layer, codec, dtype::bf16, dtype::f32>>(plan::profiles::portable, 512);
    const plan::dispatch* halves = nullptr;
    std::size_t products = 0;
    for (const auto part : made.table().prefill.recorded())
      for (const plan::dispatch& call : part) {
        CHECK_FALSE(without.takes_fragments(call));
        CHECK(with.rows_of(call).empty());
        CHECK_FALSE(with.takes_matrices(call));
        if (call.kernel == kernels::kernel::halves) halves = &call;
        if (call.kernel != kernels::kernel::matmul_chunk) continue;
        const auto constant = [&](std::string_view name) {
          return call.specialization[kernels::matmul_chunk_interface.specialization_index(name)];
        };
        const std::uint32_t rows = constant("rows"), tokens = constant("max_tokens");
        REQUIRE(halves != nullptr);
        CHECK(with.order_of(*halves) == with.order_of(call));
        CHECK(with.takes_fragments(call));
        if (!with.takes_fragments(call)) continue;
        ++products;
        const kernels::few_tile by =
            kernels::fragment_tile(static_cast<kernels::codec>(constant("codec")), rows, tokens);
        CHECK(with.groups_of(call) ==
              std::array{(tokens + by.tokens - 1) / by.tokens, (rows + by.rows - 1) / by.rows, 1u});
      }
    CHECK(products > 0);
  };
  look.operator()<dtype::q8_0>();
  look.operator()<dtype::bf16>();
  for (const auto type : {kernels::codec::f16, kernels::codec::bf16, kernels::codec::f32, kernels::codec::q8_0,
                          kernels::codec::q4_0, kernels::codec::q4_k, kernels::codec::q6_k})
    for (const std::uint32_t rows : {128u, 256u, 2560u, 4096u, 6144u, 28672u, 131072u})
      for (const std::uint32_t tokens : {64u, 100u, 512u, 2048u}) {
        const kernels::few_tile by = kernels::fragment_tile(type, rows, tokens);
        INFO(kernels::info(type).name << " " << rows << " x " << tokens);
        CHECK(by.rows <= rows);
        CHECK(by.subgroups * 32 % by.rows == 0);                     // subgroups of 32 rows, all tokens each
        CHECK(by.tokens * 8 % (by.subgroups * 32) == 0);             // as many pieces of 64 columns for each invocation
        CHECK(by.tokens / 16 <= 8 * (by.subgroups * 32 / by.rows));  // sums of eight fragments for each subgroup
      }
  // Each place of 128 columns once.
  for (const auto order : {kernels::halves_order::octets, kernels::halves_order::blocks}) {
    std::vector<bool> taken(256);
    for (std::size_t place = 0; place < taken.size(); ++place) {
      const std::size_t to = kernels::fragment_place(order, place);
      REQUIRE(to / 128 == place / 128);
      CHECK_FALSE(taken[to]);
      taken[to] = true;
    }
  }
}

TEST_CASE(
    "a batch's products in halves cover all rows and tokens of the pass; the columns are shared alike whatever the "
    "pass") {
  const checked_device on;
  const runtime::kernel_set with(on.device, {.half_matrix = true, .few_halves = true}),
      without(on.device, {.half_matrix = true});
  for (const std::uint32_t slot_count : {3u, 8u, 24u, 40u, 64u}) {
    const plan::planned made = plan::planned::of<models::llama<one_layer, dtype::q8_0, dtype::bf16, dtype::f32>>(
        plan::profiles::portable, 128, {.slot_count = slot_count, .coded_products = plan::chunk_arithmetic::halves});
    std::size_t products = 0;
    for (const auto part : made.table().batch.recorded())
      for (const plan::dispatch& call : part) {
        const bool makes = call.kernel == kernels::kernel::halves,
                   multiplies = call.kernel == kernels::kernel::matmul_chunk,
                   tiled = slot_count % 8 == 0 && (makes || multiplies);
        CHECK_FALSE(without.takes_tiled_halves(call));
        CHECK(without.rows_of(call).empty());
        CHECK(with.takes_tiled_halves(call) == tiled);
        if (multiplies) CHECK(without.groups_of(call, 1, slot_count)[0] == std::max(1u, call.groups[0] / slot_count));
        std::vector<std::uint32_t> passes;
        for (std::uint32_t rows = 8; tiled && rows < slot_count; rows *= 2) passes.push_back(rows);
        CHECK(with.rows_of(call) == passes);
        if (!multiplies || !tiled) continue;
        ++products;
        const std::uint32_t rows = call.specialization[kernels::matmul_chunk_interface.specialization_index("rows")];
        passes.push_back(slot_count);
        for (const std::uint32_t tokens : passes) {
          const kernels::few_tile by = kernels::few_chunk_tile(rows, tokens);
          CHECK(tokens % by.tokens == 0);
          CHECK(by.subgroups * 32 / by.rows ==
                kernels::few_chunk_tile(rows, 8).subgroups * 32 / kernels::few_chunk_tile(rows, 8).rows);
          CHECK(by.subgroups * 8 * by.rows * 4 <= 16384);  // as plan/verify.hpp counts shared memory
          CHECK(8 * by.rows / 4 <= by.subgroups * 32);     // an invocation for each sum of the tile
          CHECK(with.groups_of(call, tokens == slot_count ? 0 : tokens, slot_count) ==
                std::array<std::uint32_t, 3>{tokens / by.tokens, (rows + by.rows - 1) / by.rows, 1});
        }
      }
    CHECK(products == (slot_count == 3 ? 0 : 5));
  }
}

TEST_CASE("products by experts have workgroups for every list that a pass can fill, by matrices and without") {
  constexpr auto mixture = [] {
    auto out = one_layer;
    out.num_local_experts = 8, out.num_experts_per_tok = 2;
    return out;
  };
  static constexpr decoder_config config = mixture();
  const checked_device on;
  const runtime::kernel_set with(on.device, {.few_matrix = true}), without(on.device, {});
  const plan::planned coded = plan::planned::of<models::mixtral<config, dtype::q8_0, dtype::q8_0, dtype::f32>>(
                          plan::profiles::portable, 1024, {.slot_count = 64}),
                      dense = plan::planned::of<models::mixtral<config, dtype::f16>>(plan::profiles::portable, 1024,
                                                                                     {.slot_count = 64});
  for (const plan::planned* made : {&coded, &dense})
    for (const plan::sequence* of : {&made->table().prefill, &made->table().batch}) {
      std::size_t products = 0;
      for (const plan::dispatch& call : of->period) {
        if (!runtime::kernel_set::lists_tokens(call)) continue;
        ++products;
        const bool few = call.kernel == kernels::kernel::matmul_few;
        CHECK(few == (made == &coded));
        const auto constant = [&](std::string_view name) {
          return call.specialization[kernels::interface_of(call.kernel).specialization_index(name)];
        };
        const std::uint32_t list = constant(few ? "list_tokens" : "tile_tokens"), tile = constant("tile_tokens"),
                            lists = kernels::expert_tile_count(of->max_tokens, 8, 2, list);
        CHECK(list == (!few ? 8u : of == &made->table().prefill ? 32u : 16u));
        CHECK(without.groups_of(call) == call.groups);
        CHECK(call.groups[1] == lists * (list / tile));
        CHECK(with.takes_matrices(call) == few);
        if (few) CHECK(with.groups_of(call)[1] == lists);
        CHECK(with.rows_of(call).empty());
        // Lists are not as many times fewer as rows are: each of few pairs may be alone in its own.
        for (const std::uint32_t rows : {1u, 2u, 8u, 16u, 32u})
          CHECK(without.groups_of(call, rows, of->max_tokens)[1] >=
                kernels::expert_tile_count(rows, 8, 2, list) * (list / tile));
        CHECK(without.groups_of(call, 1, of->max_tokens)[1] == 2 * (list / tile));
      }
      CHECK(products == 2);
    }
}

TEST_CASE("a subgroup of a product by matrices keeps at most 16 numbers a lane of a tile") {
  for (const auto kernel : {kernels::kernel::matmul_few, kernels::kernel::ternary_few})
    for (const std::uint32_t rows : {1024u, 4096u, 6144u, 28672u, 262144u})
      for (const std::uint32_t tokens : {1u, 8u, 16u, 24u, 32u, 256u}) {
        const kernels::few_tile by = kernels::few_matrix_tile(kernel, rows, tokens);
        CHECK((by.rows == 0) == (tokens <= 8));
        if (by.rows == 0) continue;
        CHECK(by.rows % 16 == 0);
        CHECK((by.tokens == 16 || by.tokens == 32));
        CHECK(by.subgroups % 8 == 0);
        if (kernel == kernels::kernel::matmul_few) CHECK(by.rows * 8 / by.subgroups * by.tokens <= 512);
      }
}

TEST_CASE(
    "products of tiled x: 64 sums a lane, shared memory that every device with matrices has, no codec whose blocks "
    "have two factors") {
  for (const std::uint32_t tokens : {1u, 8u, 9u, 16u}) {
    const kernels::few_tile by = kernels::tiled_few_tile(tokens);
    CHECK((by.rows == 16 || by.rows == 32));
    CHECK(by.tokens == (tokens + 7) / 8 * 8);
    CHECK((by.subgroups == 8 || by.subgroups == 16));
    CHECK(by.rows * by.tokens / by.subgroups <= 64);
    const std::uint32_t staged = by.subgroups * by.rows * (2 * 32 / by.subgroups + 1),
                        sums = 32 * 8 * (by.rows / 4 + 1);
    CHECK(16 * std::max(staged, sums) + 2 * 128 * by.rows <= kernels::matrix_shared_memory_bytes);
    CHECK(kernels::wants_tiles(kernels::codec::q4_k, tokens));
    CHECK_FALSE(kernels::wants_tiles(kernels::codec::q6_k, tokens));
  }
  CHECK_FALSE(kernels::wants_tiles(kernels::codec::q8_0, 17));
}
