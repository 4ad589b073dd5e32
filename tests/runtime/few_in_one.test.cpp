// SPDX-License-Identifier: MIT
// All layers of a batch's pass by workgroups that wait for each other (shaders/layers_few.comp), held against the chain of dispatches, whose sums have another order; and where they wait in vain, no
// numbers, and the chain from then on.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/batch_executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {
constexpr plan::batch_shape of_eight{.slots = 8, .page_size = 16, .coded_products = plan::chunk_arithmetic::halves};
constexpr decoder_config config_of(std::uint32_t hidden, std::uint32_t intermediate, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim) {
  return {.model_type = architecture::llama,
          .hidden_size = hidden,
          .intermediate_size = intermediate,
          .num_hidden_layers = 3,
          .num_attention_heads = heads,
          .num_key_value_heads = kv_heads,
          .head_dim = head_dim,
          .vocab_size = 512,
          .max_position_embeddings = 640,
          .rope_theta = 10'000.f,
          .rms_norm_eps = 1e-5f};
}
// Heads in pairs and alone, a workgroup with one tile of the stream and with several, columns that not all subgroups have.
constexpr decoder_config paired = config_of(512, 1536, 8, 2, 64), single = config_of(256, 1024, 3, 1, 128), wide = config_of(3072, 4096, 24, 8, 128), blocks = config_of(512, 2048, 8, 4, 64);

/// Slot s has pages s, s + 8, ... : no slot's lie behind each other.
std::vector<std::uint32_t> pages_of(const plan::table& table, std::uint32_t slot) {
  std::vector<std::uint32_t> out(table.slot_pages());
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = slot + i * table.shape.slots;
  return out;
}
/// Feeds each of these slots tokens of its own, slot s to its position, one pass a token. @return logits of the slots
std::vector<std::vector<float>> fed(runtime::batch_executor& run, const std::vector<std::uint32_t>& slots, const std::vector<std::uint32_t>& positions) {
  const plan::table& table = run.table();
  const std::uint32_t most = *std::ranges::max_element(positions);
  std::vector<std::vector<std::int32_t>> tokens(table.shape.slots);
  for (const std::uint32_t slot : slots)
    for (std::uint32_t i = 0; i <= positions[slot]; ++i) tokens[slot].push_back(static_cast<std::int32_t>((37 * i + 101 * slot + i * i % 29) % 512));
  for (std::uint32_t turn = 0; turn <= most; ++turn) {
    for (const std::uint32_t slot : slots) {
      const std::uint32_t behind = most - positions[slot];  // all end together
      if (turn >= behind) run.set(slot, {std::span(tokens[slot]).first(turn - behind + 1), pages_of(table, slot), table.context, true, {}});
    }
    run.decode(table.shape.slots, 1, turn == most, 100);
  }
  std::vector<std::vector<float>> out;
  for (const std::uint32_t slot : slots) out.emplace_back(run.logits(slot).begin(), run.logits(slot).end());
  return out;
}
double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = double{found[i]} - double{expected[i]};
    apart += difference * difference, size += double{expected[i]} * double{expected[i]};
  }
  return std::isfinite(apart) ? std::sqrt(apart / size) : HUGE_VAL;
}
runtime::kernel_modules as_chain(runtime::kernel_modules of) {
  of.in_one = false;
  return of;
}
bool runs(const gpu::device& on, const plan::table& table, const runtime::kernel_modules& modules) {
  return modules.in_one && runtime::resident_workgroups(on) != 0 && modules.run(table.batch_in_one.in_one.front());
}
}  // namespace

TEST_CASE("workgroups that wait for each other give a batch the numbers of the chain, and a session those that it has alone", "[runtime][in_one][resident][gpu]") {
  const checked_device on;
  const runtime::kernel_modules modules = runtime::usable_modules(on.device).front();
  const auto agrees = [&](const plan::planned& made, const std::vector<std::uint32_t>& positions) {
    const plan::table& table = made.table();
    REQUIRE_FALSE(table.batch_in_one.in_one.empty());
    if (!runs(on.device, table, modules))
      SKIP("NOT RUN: needs an NVIDIA GPU with " << table.batch_in_one.in_one.front().groups[0] << " multiprocessors or more, found " << on.device.label());
    std::vector<std::uint32_t> all(8);
    std::iota(all.begin(), all.end(), 0u);
    runtime::batch_executor run(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
    CHECK(run.prove().kernel.empty());
    REQUIRE(run.in_one());
    const auto found = fed(run, all, positions);
    runtime::batch_executor chain(on.device, table, runtime::synthetic_weights(on.device, table), as_chain(modules), nullptr);
    REQUIRE_FALSE(chain.in_one());
    const auto expected = fed(chain, all, positions);
    for (std::uint32_t slot = 0; slot < 8; ++slot) {
      CAPTURE(slot);
      CHECK(distance(found[slot], expected[slot]) < 0.02);
    }
    for (const std::uint32_t slot : {0u, 5u}) {
      runtime::batch_executor alone(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
      CHECK(fed(alone, {slot}, positions)[0] == found[slot]);
    }
  };
  // Positions on both sides of the ends of attention's spans and of pages.
  const std::vector<std::uint32_t> positions{0, 7, 255, 256, 300, 511, 512, 600};
  agrees(plan::planned::of<models::llama<paired, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), positions);
  agrees(plan::planned::of<models::llama<paired, dtype::q4_0>>(plan::profiles::portable, 640, of_eight), positions);
  agrees(plan::planned::of<models::llama<single, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), positions);
  const std::vector<std::uint32_t> short_ones{0, 1, 2, 3, 8, 15, 16, 17};
  agrees(plan::planned::of<models::llama<wide, dtype::q4_1>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::llama<wide, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::llama<blocks, dtype::q4_k>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::llama<blocks, dtype::q6_k>>(plan::profiles::portable, 640, of_eight), short_ones);
}

TEST_CASE("a batch whose workgroups wait in vain has no numbers, and the chain goes on", "[runtime][in_one][resident][gpu]") {
  const checked_device on;
  const runtime::kernel_modules modules = runtime::usable_modules(on.device).front();
  const plan::planned made = plan::planned::of<models::llama<paired, dtype::q8_0>>(plan::profiles::portable, 640, of_eight);
  if (!runs(on.device, made.table(), modules)) SKIP("NOT RUN: needs an NVIDIA GPU with " << made.table().batch_in_one.in_one.front().groups[0] << " multiprocessors or more, found " << on.device.label());
  std::vector<plan::dispatch> in_one(made.table().batch_in_one.in_one.begin(), made.table().batch_in_one.in_one.end());
  in_one[0].specialization[kernels::layers_few_interface.specialization_index("patience")] = 0;
  plan::table table = made.table();
  table.batch_in_one.in_one = in_one;
  const std::vector<std::uint32_t> positions(8, 2);
  runtime::batch_executor chain(on.device, table, runtime::synthetic_weights(on.device, table), as_chain(modules), nullptr);
  const auto expected = fed(chain, {0, 1}, positions);

  runtime::batch_executor unproven(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  REQUIRE(unproven.in_one());
  for (const auto& logits : fed(unproven, {0, 1}, positions)) CHECK(std::ranges::all_of(logits, [](float x) { return std::isnan(x); }));
  for (const std::uint32_t slot : {0u, 1u}) unproven.set(slot, {});
  unproven.clean(2, pages_of(table, 2));
  REQUIRE_FALSE(unproven.in_one());
  CHECK(fed(unproven, {0, 1}, positions) == expected);

  // Who asks for a proof begins with the chain.
  runtime::batch_executor proven(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  CHECK(proven.prove().kernel.empty());
  REQUIRE_FALSE(proven.in_one());
  CHECK(fed(proven, {0, 1}, positions) == expected);
}
