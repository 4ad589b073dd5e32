// SPDX-License-Identifier: MIT
// Compares the resident dispatch of coded weights (shaders/layers_coded.comp), whose workgroups wait for each other,
// with the chain of dispatches: the tokens have the same bits. On a device for which the kernel is not made a pass
// draws no token, and decode uses the chain from then on.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/mixes.hpp"
#include "intaglio/models/gemma2.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/gptoss.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/olmo2.hpp"
#include "intaglio/models/qwen2.hpp"
#include "intaglio/models/qwen3moe.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"

using namespace intaglio;

namespace {
constexpr decoder_config small_config{.model_type = architecture::llama,
                                      .hidden_size = 320,
                                      .intermediate_size = 640,
                                      .num_hidden_layers = 3,
                                      .num_attention_heads = 5,
                                      .num_key_value_heads = 1,
                                      .head_dim = 64,
                                      .vocab_size = 512,
                                      .max_position_embeddings = 64,
                                      .rope_theta = 10'000.f,
                                      .rms_norm_eps = 1e-5f};
using small = models::llama<small_config, dtype::q8_0>;

constexpr decoder_config wide_config{.model_type = architecture::llama,
                                     .hidden_size = 512,
                                     .intermediate_size = 1280,
                                     .num_hidden_layers = 9,
                                     .num_attention_heads = 8,
                                     .num_key_value_heads = 2,
                                     .head_dim = 64,
                                     .vocab_size = 512,
                                     .max_position_embeddings = 512,
                                     .rope_theta = 10'000.f,
                                     .rms_norm_eps = 1e-5f};

/// Tokens from an empty cache on, at a high temperature, where nearly every bit of the logits counts.
std::vector<std::uint32_t> drawn(runtime::executor& run, std::uint32_t count) {
  return drawn_until_none(run, 0, 17, {.temperature = 4.f, .seed = 5}, count);
}
std::vector<std::uint32_t> of_chain(const gpu::device& on, const plan::table& table, const plan::device_class& modules,
                                    std::uint32_t count) {
  runtime::executor chain(on, table, runtime::synthetic_weights(on, table), as_chain(modules), nullptr);
  return drawn(chain, count);
}
}  // namespace

namespace {
/// @param workgroups at most
void agrees(const gpu::device& on, const plan::planned& made, std::uint32_t count, std::uint32_t workgroups = 132) {
  const plan::table& table = made.table();
  plan::device_class modules = runtime::usable_classes(on).front();
  modules.resident_workgroups = std::min(modules.resident_workgroups, workgroups);
  CAPTURE(workgroups);
  REQUIRE_FALSE(table.resident_decode.resident.empty());
  if (!plan::runs(table.resident_decode.resident.front(), modules))
    SKIP("NOT RUN: needs an NVIDIA GPU with " << table.resident_decode.resident.front().least_groups
                                              << " multiprocessors or more, found " << on.label());
  runtime::executor run(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  CHECK(run.prove().kernel.empty());
  CHECK(drawn(run, count) == of_chain(on, table, modules, count));
}
}  // namespace

TEST_CASE("workgroups that wait for each other draw the tokens of the chain of matrices in several codecs",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const auto mixed = [&](const decoder_config& c, std::string_view mix, std::uint32_t count) {
    CAPTURE(mix, c.hidden_size);
    agrees(on.device,
           families::planned_of(c, families::mix_of(c, mix).value(), "it", plan::profiles::portable,
                                std::min(c.max_position_embeddings, 2048u)),
           count);
  };
  for (const std::string_view mix : {"q4_k_m", "q4_k_s", "q5_k_m", "q3_k_l", "q3_k_s"}) mixed(wide_config, mix, 300);
  // Every codec whose rows come in pairs.
  for (const dtype codec : {dtype::q5_0, dtype::q5_1, dtype::q2_k, dtype::q3_k, dtype::q5_k, dtype::iq2_xs,
                            dtype::iq1_m, dtype::iq4_nl, dtype::mxfp4, dtype::nvfp4, dtype::q1_0, dtype::q2_0}) {
    CAPTURE(name(codec));
    agrees(on.device,
           families::planned_of(wide_config, {codec, dtype::f16, dtype::f16}, "it", plan::profiles::portable, 512), 40);
  }
  mixed(models::mistral_7b_v02_config, "q4_k_m", 40);
  mixed(models::qwen25_05b<dtype::f16>::config, "q4_k_m", 300);
  mixed(models::gemma3_1b<dtype::f16>::config, "q4_k_m", 600);
  mixed(models::qwen3_06b<dtype::f16>::config, "q4_k_m", 40);
  mixed(models::phi_4_mini<dtype::f16>::config, "q4_k_m", 40);
  // Inputs of 18,944 columns in two parts.
  mixed(models::qwen25_7b<dtype::f16>::config, "q4_k_m", 40);
  // Experts, also with biases and sinks; over the end of attention's first span and of windows.
  mixed(models::qwen3_30b_a3b<dtype::f16>::config, "q4_k_m", 40);
  agrees(on.device,
         families::planned_of(models::gptoss_20b_config, {dtype::mxfp4, dtype::q8_0, dtype::q8_0}, "it",
                              plan::profiles::portable, 2048),
         300);
  // Every fourth layer without rotation.
  mixed(models::smollm3_3b<dtype::f16>::config, "q4_k_m", 300);
}

TEST_CASE("workgroups that wait for each other draw the tokens of the chain of coded weights",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  agrees(on.device, plan::planned::of<small>(plan::profiles::portable, 64), 60);
  // Over the end of attention's first span; over Gemma's window and the end of its rings.
  agrees(on.device, plan::planned::of<models::mistral_7b<dtype::q4_1>>(plan::profiles::portable, 1024), 300);
  agrees(on.device, plan::planned::of<models::gemma3_4b<dtype::bf16>>(plan::profiles::portable, 4096), 1700);
  // Inputs in two parts, and two turns of each where workgroups are fewer.
  agrees(on.device, plan::planned::of<models::mistral_7b<dtype::bf16>>(plan::profiles::portable, 1024), 40);
  agrees(on.device, plan::planned::of<models::mistral_7b<dtype::f16>>(plan::profiles::portable, 1024), 40, 108);
  agrees(on.device, plan::planned::of<models::mistral_7b<dtype::q4_k>>(plan::profiles::portable, 1024), 40);
  agrees(on.device, plan::planned::of<models::mistral_7b<dtype::q6_k>>(plan::profiles::portable, 1024), 40);
  // Biases, with heads of 64 and of 128.
  agrees(on.device, plan::planned::of<models::qwen25_05b<dtype::q8_0>>(plan::profiles::portable, 1024), 300);
  agrees(on.device, plan::planned::of<models::qwen25_3b<dtype::bf16>>(plan::profiles::portable, 1024), 40);
  agrees(on.device, plan::planned::of<models::qwen25_7b<dtype::bf16>>(plan::profiles::portable, 1024), 40);
  // No rings, because windows are no shorter than the context, or nearly as long: up to its end.
  agrees(on.device, plan::planned::of<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, 300), 299);
  agrees(on.device, plan::planned::of<models::gemma3_4b<dtype::bf16>>(plan::profiles::portable, 1060), 1059);
  // As many workgroups as a device has room for.
  for (const std::uint32_t workgroups : {108u, 120u})
    agrees(on.device, plan::planned::of<models::mistral_7b<dtype::q4_0>>(plan::profiles::portable, 1024), 40,
           workgroups);
  agrees(on.device, plan::planned::of<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, 2048), 40, 114);
  // Norms and blocks, and weights touched in the waits.
  agrees(on.device, plan::planned::of<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, 2048), 40);
}

TEST_CASE(
    "workgroups that wait for each other draw the tokens of the chain of bounded scores and norms after sublayers",
    "[runtime][resident][resident][gpu]") {
  const checked_device on;
  // Over the end of attention's first span, in models whose heads four workgroups share, or one has.
  agrees(on.device, plan::planned::of<models::gemma2_2b<dtype::q8_0>>(plan::profiles::portable, 8192), 300);
  agrees(on.device, plan::planned::of<models::olmo2_1b<dtype::bf16>>(plan::profiles::portable, 4096), 600);
  agrees(on.device, plan::planned::of<models::olmo2_7b<dtype::q8_0>>(plan::profiles::portable, 1024), 300);
  agrees(on.device,
         families::planned_of(models::mistral_7b_v02_config,
                              families::mix_of(models::mistral_7b_v02_config, "q3_k_m").value(), "it",
                              plan::profiles::portable, 1024),
         40);
}

TEST_CASE("a device for which the kernel of coded weights is not made gets no token of it",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  if (!on.device.has(gpu::feature::shader_int64)) SKIP("NOT RUN: needs shaderInt64, found " << on.device.label());
  const plan::planned made = plan::planned::of<small>(plan::profiles::portable, 64);
  // One turn of waiting, so that where it would compute it times out as well.
  std::vector<plan::dispatch> resident(made.table().resident_decode.resident.begin(),
                                       made.table().resident_decode.resident.end());
  resident[0].specialization[kernels::layers_coded_interface.specialization_index("spin_limit")] = 1;
  plan::table table = made.table();
  table.resident_decode.resident = resident;
  const plan::device_class modules = resident_class(on.device);
  runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  CHECK(run.prove().kernel == "layers_coded");
  CHECK(drawn(run, 4).empty());
  REQUIRE(run.leave_resident());
  CHECK(drawn(run, 4) == of_chain(on.device, table, modules, 4));
}
