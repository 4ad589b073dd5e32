// SPDX-License-Identifier: MIT
// Compares the resident dispatch of ternary weights of a batch (shaders/layers_ternary_rows.comp), whose workgroups
// wait for each other, with the chain of dispatches: the logits have the same bits. Where a wait times out, there are
// no logits, and passes use the chain from then on.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "runtime/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {
constexpr plan::batch_shape of_slots(std::uint32_t slot_count) { return {.slot_count = slot_count, .page_size = 16}; }
constexpr decoder_config config_of(std::uint32_t hidden, std::uint32_t intermediate, std::uint32_t heads,
                                   std::uint32_t kv_heads, std::uint32_t head_dim) {
  auto out = models::bitnet_2b_4t::config;
  out.hidden_size = hidden, out.intermediate_size = intermediate, out.num_hidden_layers = 3;
  out.num_attention_heads = heads, out.num_key_value_heads = kv_heads, out.head_dim = head_dim;
  out.vocab_size = 512, out.max_position_embeddings = 640;
  return out;
}
// Heads in pairs and alone, a workgroup with one tile of the stream and with several, columns that not all subgroups
// have; the last is the shape of BitNet b1.58 2B4T.
constexpr decoder_config paired = config_of(512, 1536, 8, 2, 64), single = config_of(256, 1024, 3, 1, 128),
                         wide = config_of(2560, 6912, 20, 5, 128);
}  // namespace

TEST_CASE("workgroups that wait for each other give a batch of a BitNet the numbers of the chain",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  const auto agrees = [&](const plan::planned& made, const std::vector<std::uint32_t>& positions,
                          std::uint32_t workgroups = 132) {
    const plan::table& table = made.table();
    REQUIRE_FALSE(table.resident_batch.resident.empty());
    if (!runs(on.device, table, modules)) SKIP(not_run(on.device, table));
    plan::device_class fewer = modules;
    fewer.resident_workgroups = std::min(fewer.resident_workgroups, workgroups);
    CAPTURE(positions.size(), workgroups);
    const auto [found, expected] = fed_both_ways(on.device, table, fewer, positions);
    for (std::size_t slot = 0; slot < positions.size(); ++slot) {
      CAPTURE(slot);
      CHECK(found[slot] == expected[slot]);
    }
  };
  // Positions on both sides of the ends of attention's spans and of pages; vacant slots after them and between.
  const std::vector<std::uint32_t> positions{0, 7, 255, 256, 300, 511, 512, 600};
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8)), positions);
  agrees(plan::planned::of<models::bitnet_b158<single>>(plan::profiles::portable, 640, of_slots(8)), positions);
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8)), {3, 20, 1});
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(8)), positions);
  std::vector<std::uint32_t> many(27);
  for (std::uint32_t slot = 0; slot < many.size(); ++slot) many[slot] = slot * 13 % 40;
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(24)),
         {3, 20, 1, 7, 8, 30, 31, 2, 12});
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(3)), {3, 20, 1});
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(16)),
         {3, 20, 1, 7, 8, 30, 31, 2, 12}, 108);
}

TEST_CASE("rows of drafts, which follow rows of the same pass, have the numbers of the chain in one dispatch too",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  const auto agrees = [&](const plan::planned& made, const std::vector<drafted_session>& sessions) {
    const plan::table& table = made.table();
    REQUIRE_FALSE(table.resident_batch.resident.empty());
    if (!runs(on.device, table, modules)) SKIP(not_run(on.device, table));
    runtime::batch_executor run(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
    CHECK(run.prove().kernel.empty());
    REQUIRE(run.runs_resident());
    CHECK(run.takes_drafts());
    const auto found = fed_with_drafts(run, sessions);
    REQUIRE(run.runs_resident());
    runtime::batch_executor chain(on.device, table, runtime::synthetic_weights(on.device, table), as_chain(modules),
                                  nullptr);
    const auto expected = fed_with_drafts(chain, sessions);
    for (std::size_t row = 0; row < expected.size(); ++row) {
      CAPTURE(row, sessions.front().position);
      CHECK(found[row] == expected[row]);
    }
  };
  // Drafts after a first token, over ends of octets, pages and spans; in slots in front of and after the session's,
  // beside sessions without drafts.
  for (const std::uint32_t position : {7u, 11u, 259u, 512u, 600u}) {
    const std::vector<drafted_session> sessions{{3, position, {0, 1, 2, 5, 6}}, {4, 20, {7}}};
    agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8)), sessions);
  }
  agrees(plan::planned::of<models::bitnet_b158<single>>(plan::profiles::portable, 640, of_slots(8)),
         {{0, 258, {1, 2, 3, 4, 5, 6}}, {7, 300, {}}});
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(8)),
         {{0, 258, {1, 2, 3, 4, 5, 6, 7}}});
  agrees(plan::planned::of<models::bitnet_b158<wide>>(plan::profiles::portable, 640, of_slots(16)),
         {{9, 30, {0, 1, 2, 3, 4, 5, 6}}, {8, 17, {7, 10, 15}}, {14, 5, {}}});
  agrees(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(32)),
         {{0, 40, {31, 30, 1, 2, 17}}, {16, 300, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}});
}

TEST_CASE("a batch of a BitNet whose workgroups time out has no numbers, and the chain goes on",
          "[runtime][resident][resident][gpu]") {
  wait_in_vain(plan::planned::of<models::bitnet_b158<paired>>(plan::profiles::portable, 640, of_slots(8)));
}
