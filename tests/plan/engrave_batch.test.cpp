// SPDX-License-Identifier: MIT
// Plans with a batch, counted: what changes here changes the speed of every token of every session.
#include "intaglio/plan/engrave_batch.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/plan/variants_used.hpp"

using namespace intaglio;

namespace {
using models::bitnet_2b_4t;
constexpr plan::batch_shape of_32{.slot_count = 32};
constexpr const plan::table& alone = plan::engraved<bitnet_2b_4t, plan::profiles::portable>::table;
constexpr const plan::table& many = plan::engraved_batch<bitnet_2b_4t, plan::profiles::portable, of_32>::table;

// Pages have 64 positions; by default there are as many as 32 full slots take. A row of the state has 16 words, the
// token, the pages and the history.
static_assert(many.shape == plan::batch_shape{32, 64, 32 * 4096 / 64} && many.slot_pages() == 64);
static_assert(many.pool(0).positions == 32 * 4096 && many.pool_bytes() == 32 * alone.cache_bytes());
static_assert(kernels::state::slot_words(4096, 64) == (17 + 64 + 4096 + 3) / 4 * 4 &&
              many.batch_progress_offset() == 4ull * (16 + 32 * kernels::state::slot_words(4096, 64) + 32));
static_assert(many.batch_state_bytes() ==
              many.batch_progress_offset() + kernels::layers::progress_bytes(30));  // of the resident dispatch
static_assert(plan::engraved_batch<bitnet_2b_4t, plan::profiles::portable,
                                   plan::batch_shape{.slot_count = 8, .page_size = 256, .pages = 40}, 2048>::table.shape
                  .pages == 40);

// Nine dispatches a layer as in a pass over drafts, four around them; a dispatch a layer moves pages, and nothing waits
// between layers.
static_assert(many.batch.max_tokens == 32 && many.batch.batched && many.batch.has_head && many.batch.has_sampler);
static_assert(many.batch.dispatch_count() == 30 * 9 + 4 && many.batch.barrier_count() == 30 * 9 + 3);
static_assert(many.moves.dispatch_count() == 30 && many.moves.barrier_count() == 0);

// The rest is the model's alone: weights, sequences, caches; and a program that has no batch is as before.
static_assert(many.weights.size() == alone.weights.size() && many.weight_bytes() == alone.weight_bytes() &&
              many.batch.weight_bytes() - 31ull * 2 * 2560 == alone.verify.weight_bytes() - 15ull * 2 * 2560);
static_assert(many.decode.arena_bytes == alone.decode.arena_bytes &&
              many.prefill.dispatch_count() == alone.prefill.dispatch_count() &&
              many.state_bytes() == alone.state_bytes());
static_assert(many.hash != alone.hash && alone.batch.layers == 0);
static_assert(plan::variants_used(std::array{&many}).has(kernels::variant::pages) &&
              !plan::variants_used(std::array{&alone}).has(kernels::variant::pages));

std::string refused(const plan::batch_shape& shape) {
  try {
    plan::planned::of<models::fable>(plan::profiles::cpu, 512, shape);
  } catch (const argument_error& problem) { return problem.what(); }
  return {};
}
}  // namespace

TEST_CASE("a batch's shape is refused in a sentence where it does not fit") {
  CHECK(refused({.slot_count = 8}).empty());
  CHECK(refused({.slot_count = 1}).find("expected 2 to 8 slots or a multiple of that up to 256, found 1") !=
        std::string::npos);
  CHECK(refused({.slot_count = 12}).find("found 12") != std::string::npos);
  CHECK(refused({.slot_count = 8, .coded_products = plan::chunk_arithmetic::f16})
            .find("expected products as a profile whose prompts are exact has them, found f16") != std::string::npos);
  CHECK(refused({.slot_count = 4, .page_size = 48})
            .find("expected pages of 8, 16, 32, 64, 128 or a multiple of 256 positions, found 48") !=
        std::string::npos);
  CHECK(refused({.slot_count = 4, .page_size = 64, .pages = 7})
            .find("expected at least the 8 pages that one slot may take, found 7") != std::string::npos);
  CHECK(refused({.slot_count = 256, .page_size = 64, .pages = 1u << 25}).find("expected at most") != std::string::npos);
}

TEST_CASE("layers with windows have all their positions in the pool, and what moves them knows both caches") {
  const plan::planned made = plan::planned::of<models::gemma3_4b<>>(plan::profiles::portable, 4096, {.slot_count = 8});
  const plan::table& t = made.table();
  CHECK(t.caches[0].positions < 4096);
  CHECK(t.pool(0).positions == 8 * 4096);
  CHECK(t.moves.period.size() == t.pattern.kinds());
  CHECK(t.batch.dispatch_count() == t.verify.dispatch_count() - 1);  // no accept
  const plan::planned coded =
      plan::planned::of<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, 4096, {.slot_count = 8});
  CHECK(coded.table().batch.dispatch_count() ==
        t.batch.dispatch_count() + 34 * 4);  // in front of each product what prepares x, of the head instead of a norm
}

TEST_CASE(
    "where a batch's products are f16, each reads what a dispatch in front of it made of the input, whatever the "
    "codec") {
  const plan::planned exact =
      plan::planned::of<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, 1024, {.slot_count = 32});
  const plan::planned coded = plan::planned::of<models::gemma3_4b<dtype::q8_0>>(
      plan::profiles::portable, 1024, {.slot_count = 32, .coded_products = plan::chunk_arithmetic::f16});
  const plan::planned dense = plan::planned::of<models::gemma3_4b<dtype::bf16>>(
      plan::profiles::portable, 1024, {.slot_count = 3, .coded_products = plan::chunk_arithmetic::f16});
  CHECK(coded.table().batch.dispatch_count() == exact.table().batch.dispatch_count());
  CHECK(coded.table().hash != exact.table().hash);
  const auto uses_batch = [](const plan::planned& of) {
    return plan::variants_used(std::array{&of.table()}).has(kernels::variant::matmul_chunk_batch);
  };
  CHECK((uses_batch(coded) && uses_batch(dense) && !uses_batch(exact)));
  for (const plan::planned* made : {&coded, &dense}) {
    const plan::sequence& batch = made->table().batch;
    std::size_t products = 0, prepared = 0;
    for (const plan::dispatch& call : batch.period) {
      CHECK(call.kernel != kernels::kernel::matmul_batch);
      CHECK(call.kernel != kernels::kernel::matmul);
      CHECK(call.kernel != kernels::kernel::attention_f16);
      const auto constant = [&](std::string_view name) {
        return call.specialization[kernels::interface_of(call.kernel).specialization_index(name)];
      };
      if (call.kernel == kernels::kernel::quantize_f16) {
        ++prepared;
        CHECK(constant("tiled") == (batch.max_tokens % 8 == 0 ? 1 : 0));
      }
      if (call.kernel != kernels::kernel::matmul_chunk) continue;
      ++products;
      CHECK(constant("tile_tokens") == (batch.max_tokens % 8 == 0 ? 32 : 8));
      CHECK(constant("max_tokens") == batch.max_tokens);
    }
    CHECK(products == 4 * made->table().pattern.kinds());
    CHECK(prepared == products);
  }
}
