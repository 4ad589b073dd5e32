// SPDX-License-Identifier: MIT
// The only active session of a batch decodes as a session without a batch does: the same tokens, from its pages and
// back to them, by the chain and by the resident dispatch; also where the results are not finite.
#include "intaglio/runtime/batch_alone.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "runtime/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {
constexpr plan::batch_shape exact{.slot_count = 3, .page_size = 8},
    f16{.slot_count = 3, .page_size = 8, .coded_products = plan::chunk_arithmetic::f16};
constexpr decoder_config llama_config{.model_type = architecture::llama,
                                      .hidden_size = 320,
                                      .intermediate_size = 640,
                                      .num_hidden_layers = 3,
                                      .num_attention_heads = 5,
                                      .num_key_value_heads = 1,
                                      .head_dim = 64,
                                      .vocab_size = 512,
                                      .max_position_embeddings = 128,
                                      .rope_theta = 10'000.f,
                                      .rms_norm_eps = 1e-5f};
using small_llama = models::llama<llama_config, dtype::q8_0>;
// At a high temperature nearly every bit of the logits counts.
constexpr sampling_options drawing{.temperature = 4.f, .seed = 5};
constexpr std::uint32_t count = 30;

/// Tokens after the first one, in pages of slot 1, which the session leaves and takes again on its way.
std::vector<std::uint32_t> drawn_in_batch(runtime::batch_executor& run, const sampling_options& sampling) {
  const std::vector<std::uint32_t> pages = pages_of(run.table(), 1);
  std::vector<std::int32_t> tokens{17};
  std::vector<std::uint32_t> out;
  for (const std::uint32_t some : {1u, 3u, 16u, 10u}) {
    const auto from = static_cast<std::uint32_t>(tokens.size()) - 1;
    const runtime::slot_words words{tokens, pages, run.table().context, true, sampling};
    run.set(1, words);
    run.enter_alone(1, words);
    run.decode_alone(some, 100);
    for (std::uint32_t i = 0; i < some; ++i) {
      out.push_back(run.drawn_alone(i));
      tokens.push_back(static_cast<std::int32_t>(out.back()));
    }
    run.leave_alone(1, from, static_cast<std::uint32_t>(tokens.size()) - 1);
    run.feed_alone(0, std::vector<std::int32_t>(20, 5), 100);  // another has the caches meanwhile
  }
  REQUIRE(out.size() == count);
  return out;
}
std::vector<std::uint32_t> drawn_without_batch(const gpu::device& on, const plan::table& table,
                                               const plan::device_class& modules, const sampling_options& sampling) {
  runtime::executor run(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  return drawn_tokens(run, 0, 17, sampling, count);
}
void draws_the_same(const gpu::device& on, const plan::table& table, const plan::device_class& modules, bool resident) {
  runtime::batch_executor run(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  CHECK(run.prove().kernel.empty());
  REQUIRE(run.has_alone());
  REQUIRE(run.alone_is_resident() == resident);
  for (const sampling_options& sampling : {drawing, sampling_options{.temperature = 0}})
    CHECK(drawn_in_batch(run, sampling) == drawn_without_batch(on, table, as_chain(modules), sampling));
}
}  // namespace

TEST_CASE("a session that is the only one of a batch draws what it draws without, whatever the others' products",
          "[once]") {
  const checked_device on;
  for (const plan::batch_shape& shape : {exact, f16}) {
    const plan::planned made = plan::planned::of<small_llama>(plan::profiles::portable, 128, shape);
    draws_the_same(on.device, made.table(), gpu_class(on.device), false);
  }
}

TEST_CASE("a batch on a CPU driver has decode for one session where decode is resident", "[once]") {
  const checked_device on;
  const plan::planned made = plan::planned::of<small_llama>(plan::profiles::cpu, 128, exact);
  const runtime::batch_executor run(on.device, made.table(), runtime::synthetic_weights(on.device, made.table()),
                                    gpu_class(on.device), nullptr);
  CHECK_FALSE(run.has_alone());
  const plan::planned story = plan::planned::of<models::fable>(plan::profiles::cpu, 128, exact);
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  if (!plan::runs(story.table().resident_decode.resident.front(), modules))
    SKIP("NOT RUN: needs llvmpipe with shaderSubgroupExtendedTypes, found " << on.device.label());
  draws_the_same(on.device, story.table(), modules, true);
}

TEST_CASE("the only session of a batch decodes by the resident dispatch", "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  const auto check = [&](plan::planned made, std::uint32_t long_from = 0) {
    plan::table table = made.table();
    if (long_from != 0) table.resident_decode.long_from = long_from;
    REQUIRE_FALSE(table.resident_decode.resident.empty());
    if (const plan::dispatch& all = table.resident_decode.resident.front(); !plan::runs(all, modules))
      SKIP("NOT RUN: needs an NVIDIA GPU with " << all.least_groups << " multiprocessors or more, found "
                                                << on.device.label());
    draws_the_same(on.device, table, modules, true);
  };
  for (const plan::batch_shape& shape : {exact, f16}) {
    check(plan::planned::of<small_llama>(plan::profiles::portable, 128, shape));
    check(plan::planned::of<models::fable>(plan::profiles::portable, 128, shape));
  }
  // Past the first position of the form for long contexts, within a call and between two.
  check(plan::planned::of<models::bitnet_2b_4t>(plan::profiles::portable, 4096, exact), 20);
  check(plan::planned::of<models::gemma3_1b<dtype::q8_0>>(plan::profiles::portable, 1024, f16));
}

// On llvmpipe too: the kernel finds that its subgroups are not of 32, and says so instead of computing.
TEST_CASE(
    "where all layers of one session give no numbers, that session has no token and the next one passes as others",
    "[runtime][resident][resident][gpu]") {
  const checked_device on;
  if (!on.device.has(gpu::feature::shader_int64)) SKIP("NOT RUN: needs shaderInt64, found " << on.device.label());
  const plan::planned made = plan::planned::of<small_llama>(plan::profiles::portable, 128, exact);
  // One turn of waiting, so that where it would compute it times out as well.
  std::vector<plan::dispatch> resident(made.table().resident_decode.resident.begin(),
                                       made.table().resident_decode.resident.end());
  resident[0].specialization[kernels::layers_coded_interface.specialization_index("spin_limit")] = 1;
  plan::table table = made.table();
  table.resident_decode.resident = resident;
  const plan::device_class modules = resident_class(on.device);

  runtime::batch_executor unproven(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  REQUIRE(unproven.alone_is_resident());
  const std::vector<std::int32_t> tokens{17};
  const std::vector<std::uint32_t> pages = pages_of(table, 1);
  const runtime::slot_words words{tokens, pages, table.context, true, drawing};
  unproven.set(1, words);
  unproven.enter_alone(1, words);
  unproven.decode_alone(1, 100);
  CHECK(unproven.drawn_alone(0) >= table.config->vocab_size);
  unproven.set(1, {});
  unproven.clean(2, pages);
  CHECK_FALSE(unproven.has_alone());

  runtime::batch_executor proven(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  CHECK(proven.prove().kernel.empty());
  CHECK_FALSE(proven.has_alone());
  runtime::batch_executor chain(on.device, table, runtime::synthetic_weights(on.device, table), as_chain(modules),
                                nullptr);
  const std::vector<std::uint32_t> positions{2, 2};
  const auto expected = fed(chain, {0, 1}, positions);
  CHECK(fed(unproven, {0, 1}, positions) == expected);
  CHECK(fed(proven, {0, 1}, positions) == expected);
}
