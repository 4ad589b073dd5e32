// SPDX-License-Identifier: MIT
// All layers of ternary weights of a batch's pass by workgroups that wait for each other (shaders/layers_ternary_few.comp), held against the chain of dispatches: the same numbers, bit for bit; and where
// they wait in vain, no numbers, and the chain from then on.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/batch_executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {
constexpr plan::batch_shape of_slots(std::uint32_t slots) { return {.slots = slots, .page_size = 16}; }
constexpr decoder_config config_of(std::uint32_t hidden, std::uint32_t intermediate, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim) {
  auto out = models::bitnet_2b_4t::config;
  out.hidden_size = hidden, out.intermediate_size = intermediate, out.num_hidden_layers = 3;
  out.num_attention_heads = heads, out.num_key_value_heads = kv_heads, out.head_dim = head_dim;
  out.vocab_size = 512, out.max_position_embeddings = 640;
  return out;
}
// Heads in pairs and alone, a workgroup with one tile of the stream and with several, columns that not all subgroups have; the last is the shape of BitNet b1.58 2B4T.
constexpr decoder_config paired = config_of(512, 1536, 8, 2, 64), single = config_of(256, 1024, 3, 1, 128), wide = config_of(2560, 6912, 20, 5, 128);

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
runtime::kernel_modules as_chain(runtime::kernel_modules of) {
  of.in_one = false;
  return of;
}
bool runs(const gpu::device& on, const plan::table& table, const runtime::kernel_modules& modules) {
  return modules.in_one && runtime::resident_workgroups(on) != 0 && modules.run(table.batch_in_one.in_one.front());
}
}  // namespace

TEST_CASE("workgroups that wait for each other give a batch of a BitNet the numbers of the chain", "[runtime][in_one][resident][gpu]") {
  const checked_device on;
  const runtime::kernel_modules modules = runtime::usable_modules(on.device).front();
  const auto agrees = [&](const plan::planned& made, const std::vector<std::uint32_t>& positions, std::uint32_t workgroups = 132) {
    const plan::table& table = made.table();
    REQUIRE_FALSE(table.batch_in_one.in_one.empty());
    if (!runs(on.device, table, modules))
      SKIP("NOT RUN: needs an NVIDIA GPU with " << table.batch_in_one.in_one.front().least_groups << " multiprocessors or more, found " << on.device.label());
    runtime::kernel_modules fewer = modules;
    fewer.resident_workgroups = std::min(fewer.resident_workgroups, workgroups);
    const auto count = static_cast<std::uint32_t>(positions.size());
    CAPTURE(count, workgroups);
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    runtime::batch_executor run(on.device, table, runtime::synthetic_weights(on.device, table), fewer, nullptr);
    CHECK(run.prove().kernel.empty());
    REQUIRE(run.in_one());
    const auto found = fed(run, all, positions);
    runtime::batch_executor chain(on.device, table, runtime::synthetic_weights(on.device, table), as_chain(modules), nullptr);
    REQUIRE_FALSE(chain.in_one());
    const auto expected = fed(chain, all, positions);
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      CAPTURE(slot);
      CHECK(found[slot] == expected[slot]);
    }
  };
  // Positions on both sides of the ends of attention's spans and of pages; slots of nobody behind them and between.
  const std::vector<std::uint32_t> positions{0, 7, 255, 256, 300, 511, 512, 600};
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8)), positions);
  agrees(plan::planned::of<models::bitnet_b158<single>>(plan::profiles::portable, 640, of_slots(8)), positions);
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8)), {3, 20, 1});
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(8)), positions);
  std::vector<std::uint32_t> many(27);
  for (std::uint32_t slot = 0; slot < many.size(); ++slot) many[slot] = slot * 13 % 40;
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(24)), {3, 20, 1, 7, 8, 30, 31, 2, 12});
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(3)), {3, 20, 1});
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(16)), {3, 20, 1, 7, 8, 30, 31, 2, 12}, 108);
}

TEST_CASE("a batch of a BitNet whose workgroups wait in vain has no numbers, and the chain goes on", "[runtime][in_one][resident][gpu]") {
  const checked_device on;
  const runtime::kernel_modules modules = runtime::usable_modules(on.device).front();
  const plan::planned made = plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8));
  if (!runs(on.device, made.table(), modules)) SKIP("NOT RUN: needs an NVIDIA GPU with " << made.table().batch_in_one.in_one.front().least_groups << " multiprocessors or more, found " << on.device.label());
  std::vector<plan::dispatch> in_one(made.table().batch_in_one.in_one.begin(), made.table().batch_in_one.in_one.end());
  in_one[0].specialization[kernels::layers_ternary_few_interface.specialization_index("patience")] = 0;
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
