// SPDX-License-Identifier: MIT
// Plans of a batch whose passes run the resident dispatch: their counts, and the plans that are refused.
#include "intaglio/plan/resident_rows.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "plan/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

namespace {
constexpr plan::batch_shape of_eight{.slot_count = 8, .coded_products = plan::chunk_arithmetic::f16};
constexpr decoder_config small_config{.model_type = architecture::llama,
                                      .hidden_size = 512,
                                      .intermediate_size = 1536,
                                      .num_hidden_layers = 3,
                                      .num_attention_heads = 6,
                                      .num_key_value_heads = 2,
                                      .head_dim = 64,
                                      .vocab_size = 512,
                                      .max_position_embeddings = 64,
                                      .rope_theta = 10'000.f,
                                      .rms_norm_eps = 1e-5f};
using small = models::llama<small_config, dtype::q8_0>;

// Planned by the compiler as well, with its default limits.
constexpr const plan::table& engraved = plan::engraved_batch<small, plan::profiles::portable, of_eight>::table;
static_assert(engraved.resident_batch.dispatch_count() == engraved.batch.dispatch_count() - 3 * 9 + 1 &&
              engraved.resident_batch.barrier_count() == engraved.batch.barrier_count() - 3 * 9 + 1);
static_assert(engraved.batch_state_bytes() == engraved.batch_progress_offset() + kernels::layers::progress_bytes(3));

std::uint32_t constant(const plan::sequence& of, std::string_view name) {
  return of.resident[0].specialization[kernels::layers_rows_interface.specialization_index(name)];
}
}  // namespace

TEST_CASE("passes over eight sessions of Mistral run the resident dispatch", "[plan][resident]") {
  const auto mistral = batch_of<models::mistral_7b<dtype::q8_0>>(of_eight);
  const plan::table& t = mistral.table();
  const plan::sequence& one = t.resident_batch;
  check_one_dispatch(t, 8, 9);
  CHECK(one.resident[0].kernel == kernels::kernel::layers_rows);
  // 256 tiles of the stream, two each.
  CHECK(one.resident[0].groups[0] == 128);
  CHECK(constant(one, "parts") == 128);
  CHECK(constant(one, "codec") == static_cast<std::uint32_t>(kernels::codec::q8_0));
  CHECK(constant(one, "context") == t.pool(0).positions);
  CHECK(one.blank_bytes == 32ull * kernels::layers_rows::exchange_bytes(4096, 14336, 4096, 1024));
  CHECK(one.blank_offset >= t.batch.arena_bytes);
}

TEST_CASE(
    "passes over 32 sessions of Mistral are resident dispatches, whose helpers write the unwritten pattern after "
    "the second layer",
    "[plan][resident]") {
  for (const std::uint32_t slot_count : {16u, 32u}) {
    CAPTURE(slot_count);
    const auto mistral = batch_of<models::mistral_7b<dtype::q8_0>>(
        {.slot_count = slot_count, .coded_products = plan::chunk_arithmetic::f16});
    const plan::table& t = mistral.table();
    const plan::sequence& one = t.resident_batch;
    const auto of_all = [&](std::string_view name) {
      return one.resident[0].specialization[kernels::layers_batch_interface.specialization_index(name)];
    };
    check_one_dispatch(t, slot_count, 9);
    CHECK(one.resident[0].kernel == kernels::kernel::layers_batch);
    CHECK(one.resident[0].groups[0] == 132);
    CHECK(of_all("parts") == 128);
    CHECK(of_all("slots") == slot_count);
    CHECK(of_all("context") == t.pool(0).positions);
    const std::uint64_t of_layer =
        plan::aligned(kernels::layers_batch::exchange_bytes(slot_count, 128, 4096, 14336, 4096, 1024, 8));
    CHECK(one.blank_bytes == 32 * of_layer);
    CHECK(one.prologue[0].specialization[kernels::embed_interface.specialization_index("blank_quads")] ==
          2 * of_layer / 16);
    const auto refused = [&](auto&& change) { return refused_resident(mistral, change); };
    CHECK_THAT(refused([](auto&, auto& arguments, auto&) { arguments[0].layer_stride -= 256; }),
               ContainsSubstring("the bytes at every argument"));
    CHECK_THAT(refused([](auto& one_, auto&, auto&) { one_.blank_bytes -= 32 * 256; }),
               ContainsSubstring("to be made blank beside the embedding"));
  }
}

TEST_CASE("workgroups of a batch's layers share the stream's rows evenly", "[plan][resident]") {
  CHECK(plan::rows_parts(4096, 132) == 128);
  CHECK(plan::rows_parts(3072, 132) == 96);
  CHECK(plan::rows_parts(2048, 132) == 128);
  CHECK(plan::rows_parts(512, 132) == 32);
  CHECK(plan::rows_parts(4096, 127) == 64);
  CHECK(plan::rows_parts(16384, 132) == 0);  // eight tiles each
  CHECK(plan::rows_parts(4096, 3) == 0);
  CHECK(plan::batch_parts(4096, 132) == 128);
  CHECK(plan::batch_parts(4096, 128) == 64);  // none would be left to help
}

TEST_CASE("batches that keep the chain", "[plan][resident]") {
  CHECK(resident(batch_of<small>(of_eight)));
  CHECK(resident(batch_of<models::llama<small_config, dtype::q4_0>>(
      {.slot_count = 2, .coded_products = plan::chunk_arithmetic::f16})));
  // A session's bits would depend on how many others there are.
  CHECK_FALSE(resident(batch_of<small>({.slot_count = 16, .coded_products = plan::chunk_arithmetic::f16})));
  CHECK_FALSE(resident(
      batch_of<models::mistral_7b<dtype::q8_0>>({.slot_count = 64, .coded_products = plan::chunk_arithmetic::f16})));
  CHECK_FALSE(resident(
      batch_of<models::mistral_7b<dtype::q8_0>>({.slot_count = 24, .coded_products = plan::chunk_arithmetic::f16})));
  CHECK_FALSE(resident(batch_of<small>({.slot_count = 8})));
  CHECK_FALSE(resident(batch_of<models::llama<small_config, dtype::bf16>>(of_eight)));
  plan::profile chain = plan::profiles::portable;
  chain.work.layers_parts = 0;
  CHECK_FALSE(resident(batch_of<small>(of_eight, chain)));
  // Columns of a subgroup's step, or of a share of the down projection.
  static constexpr decoder_config odd = [] {
    decoder_config out = small_config;
    out.intermediate_size = 1280;
    return out;
  }();
  CHECK_FALSE(resident(batch_of<models::llama<odd, dtype::q8_0>>(of_eight)));
  static constexpr decoder_config blocks = [] {
    decoder_config out = small_config;
    out.num_attention_heads = 8;
    return out;
  }();
  CHECK(resident(batch_of<models::llama<blocks, dtype::q8_0>>(of_eight)));
  CHECK_FALSE(
      resident(batch_of<models::llama<blocks, dtype::q4_k>>(of_eight)));  // 384 columns a share are no blocks of 256
}

TEST_CASE(
    "a batch's one dispatch is refused where what its workgroups exchange is not blank, not stated or not "
    "waited for",
    "[plan][resident]") {
  const auto of = batch_of<small>(of_eight);
  const auto refused = [&](auto&& change) { return refused_resident(of, change); };
  CHECK(refused([](auto&, auto&, auto&) {}).empty());
  CHECK_THAT(refused([](auto&, auto& arguments, auto&) { arguments[0].offset += 256; }),
             ContainsSubstring("the bytes at every argument"));
  CHECK_THAT(refused([](auto&, auto& arguments, auto&) { arguments[0].layer_stride -= 256; }),
             ContainsSubstring("the bytes at every argument"));
  CHECK_THAT(refused([](auto&, auto& arguments, auto&) { arguments[9].slot += 40; }),
             ContainsSubstring("the bytes at every argument"));
  CHECK_THAT(refused([](auto& one, auto&, auto&) { one.blank_offset -= 256; }),
             ContainsSubstring("to be made blank beside the embedding"));
  CHECK_THAT(refused([](auto& one, auto&, auto&) { one.blank_bytes += 256; }),
             ContainsSubstring("blank words inside the arena"));
  CHECK_THAT(refused([](auto&, auto&, auto& all) { all.barrier = false; }),
             ContainsSubstring("expected a barrier before it"));
  CHECK_THAT(refused([](auto&, auto&, auto& all) { all.subgroups = 64; }),
             ContainsSubstring("invocations a workgroup"));
}
