// SPDX-License-Identifier: MIT
// Plans of a batch of a Gemma-3 whose passes run the resident dispatch: their counts, and the plans that are refused.
#include "intaglio/plan/resident_rows_normed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/models/gemma3.hpp"
#include "intaglio/plan/planned.hpp"
#include "plan/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

namespace {
constexpr plan::batch_shape of_eight{.slot_count = 8, .coded_products = plan::chunk_arithmetic::f16};
constexpr decoder_config small_config{.model_type = architecture::gemma3,
                                      .hidden_size = 512,
                                      .intermediate_size = 1536,
                                      .num_hidden_layers = 5,
                                      .num_attention_heads = 4,
                                      .num_key_value_heads = 2,
                                      .head_dim = 128,
                                      .vocab_size = 512,
                                      .max_position_embeddings = 64,
                                      .rope_theta = 1'000'000.f,
                                      .rms_norm_eps = 1e-6f,
                                      .hidden_act = activation::gelu_tanh,
                                      .sliding_window = 32,
                                      .sliding_window_pattern = 2,
                                      .rope_local_base_freq = 10'000.f};
using small = models::gemma3<small_config, dtype::q8_0>;

// Planned by the compiler as well, with its default limits.
constexpr const plan::table& engraved = plan::engraved_batch<small, plan::profiles::portable, of_eight>::table;
static_assert(engraved.resident_batch.dispatch_count() == engraved.batch.dispatch_count() - 5 * 12 + 1 &&
              engraved.resident_batch.barrier_count() == engraved.batch.barrier_count() - 5 * 12 + 1);
}  // namespace

TEST_CASE("passes over eight sessions of Gemma-3 run the resident dispatch", "[plan][resident]") {
  const auto check = [](const plan::planned& gemma, kernels::codec codec) {
    const plan::table& t = gemma.table();
    const plan::sequence& one = t.resident_batch;
    check_one_dispatch(t, 8, 12);
    const plan::dispatch& all = one.resident[0];
    const auto of_all = [&](std::string_view name) {
      return all.specialization[kernels::layers_rows_normed_interface.specialization_index(name)];
    };
    CHECK(all.kernel == kernels::kernel::layers_rows_normed);
    // 160 tiles of the stream, five for each four workgroups; 20 steps of its columns.
    CHECK(all.groups[0] == 128);
    CHECK(of_all("parts") == 128);
    CHECK(all.subgroups == 20);
    CHECK(of_all("codec") == static_cast<std::uint32_t>(codec));
    CHECK(of_all("context") == t.pool(0).positions);
    CHECK(of_all("window") == 1024);
    CHECK(of_all("full_every") == 6);
    CHECK(one.blank_bytes ==
          34ull * plan::aligned(kernels::layers_rows_normed::exchange_bytes(2560, 10240, 2048, 1024)));
  };
  check(batch_of<models::gemma3_4b<dtype::q8_0>>(of_eight), kernels::codec::q8_0);
  check(batch_of<models::gemma3_4b<dtype::bf16>>(of_eight), kernels::codec::bf16);
}

TEST_CASE(
    "passes over 32 sessions of Gemma-3 are resident dispatches, whose helpers write the unwritten pattern after "
    "the second layer",
    "[plan][resident]") {
  const auto check = [](const plan::planned& gemma, std::uint32_t slot_count, kernels::codec codec) {
    CAPTURE(slot_count);
    const plan::table& t = gemma.table();
    const plan::sequence& one = t.resident_batch;
    check_one_dispatch(t, slot_count, 12);
    const plan::dispatch& all = one.resident[0];
    const auto of_all = [&](std::string_view name) {
      return all.specialization[kernels::layers_batch_normed_interface.specialization_index(name)];
    };
    CHECK(all.kernel == kernels::kernel::layers_batch_normed);
    CHECK(all.groups[0] == 132);
    CHECK(all.subgroups == 16);
    CHECK(of_all("parts") == 128);
    CHECK(of_all("slots") == slot_count);
    CHECK(of_all("codec") == static_cast<std::uint32_t>(codec));
    CHECK(of_all("window") == 1024);
    CHECK(of_all("full_every") == 6);
    const std::uint64_t of_layer =
        plan::aligned(kernels::layers_batch_normed::exchange_bytes(slot_count, 128, 2560, 10240, 2048, 1024, 8));
    CHECK(one.blank_bytes == 34 * of_layer);
    CHECK(one.prologue[0].specialization[kernels::embed_interface.specialization_index("blank_quads")] ==
          2 * of_layer / 16);
    CHECK_THAT(refused_resident(gemma, [](auto& one_, auto&, auto&) { one_.blank_bytes -= 34 * 256; }),
               ContainsSubstring("to be made blank beside the embedding"));
  };
  check(batch_of<models::gemma3_4b<dtype::q8_0>>({.slot_count = 16, .coded_products = plan::chunk_arithmetic::f16}), 16,
        kernels::codec::q8_0);
  check(batch_of<models::gemma3_4b<dtype::q8_0>>({.slot_count = 32, .coded_products = plan::chunk_arithmetic::f16}), 32,
        kernels::codec::q8_0);
  check(batch_of<models::gemma3_4b<dtype::bf16>>({.slot_count = 32, .coded_products = plan::chunk_arithmetic::f16}), 32,
        kernels::codec::bf16);
}

TEST_CASE("each four workgroups of a Gemma-3's batch have as many tiles of the stream", "[plan][resident]") {
  CHECK(plan::rows_normed_parts(2560, 132) == 128);
  CHECK(plan::rows_normed_parts(2560, 127) == 80);
  CHECK(plan::rows_normed_parts(3840, 132) == 120);
  CHECK(plan::rows_normed_parts(640, 132) == 40);
  CHECK(plan::rows_normed_parts(2560, 31) == 0);  // some would have six
  CHECK(plan::rows_normed_parts(2560, 3) == 0);
  CHECK(plan::batch_normed_parts(2560, 132) == 128);
  CHECK(plan::batch_normed_parts(2560, 128) == 80);  // none would be left to help
  CHECK(plan::batch_normed_parts(2560, 64) == 0);    // some would have six octets
}

TEST_CASE("batches of a Gemma-3 that keep the chain", "[plan][resident]") {
  CHECK(resident(batch_of<small>(of_eight)));
  CHECK(resident(batch_of<models::gemma3<small_config, dtype::f16>>(of_eight)));
  // 512 columns are two stages, not one for each of four workgroups.
  CHECK_FALSE(resident(batch_of<small>({.slot_count = 16, .coded_products = plan::chunk_arithmetic::f16})));
  CHECK_FALSE(resident(batch_of<small>({.slot_count = 8})));
  CHECK_FALSE(resident(batch_of<models::gemma3<small_config, dtype::f32>>(of_eight)));
  plan::profile chain = plan::profiles::portable;
  chain.work.layers_parts = 0;
  CHECK_FALSE(resident(batch_of<small>(of_eight, chain)));
  // 1,152 columns are in steps, 1,728 of a share of the down projection are not.
  CHECK_FALSE(resident(batch_of<models::gemma3_1b<dtype::q8_0>>(of_eight)));
}

TEST_CASE(
    "a Gemma-3's one dispatch is refused where what its workgroups exchange is not blank or not stated, in "
    "either kind of layer",
    "[plan][resident]") {
  const auto of = batch_of<small>(of_eight);
  const auto refused = [&](auto&& change) { return refused_resident(of, change); };
  CHECK(refused([](auto&, auto&, auto&) {}).empty());
  for (const std::size_t kind : {0u, 1u}) {
    const std::size_t first = kind * kernels::layers::argument_count;
    CHECK_THAT(refused([&](auto&, auto& arguments, auto&) { arguments[first].offset += 256; }),
               ContainsSubstring("the bytes at every argument"));
    CHECK_THAT(refused([&](auto&, auto& arguments, auto&) { arguments[first + 19].slot += 40; }),
               ContainsSubstring("the bytes at every argument"));
  }
  CHECK_THAT(refused([](auto& one, auto&, auto&) { one.blank_bytes += 256; }),
             ContainsSubstring("blank words inside the arena"));
  CHECK_THAT(refused([](auto&, auto&, auto& all) { all.barrier = false; }),
             ContainsSubstring("expected a barrier before it"));
}
