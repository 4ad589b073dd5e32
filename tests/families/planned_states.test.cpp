// SPDX-License-Identifier: MIT
// Plans of families with recurrent layers, whose states are a part of the plan.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "intaglio/families/planned_family.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/explain.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using families::planned_of;
using families::weight_types;

TEST_CASE("what recurrent layers keep is part of a plan, of a batch in each slot, and drafts of them are refused",
          "[families]") {
  const decoder_config& c = models::lfm2_12b_config;
  const weight_types types{dtype::q8_0, dtype::q8_0, dtype::q8_0};
  const plan::planned made = planned_of(c, types, "lfm2", plan::profiles::portable, 4096);
  const plan::table& t = made.table();
  CHECK(t.kept_bytes() == 10ull * 2 * 2048 * 4);
  CHECK((t.kept_offset(0) == 0 && t.kept_offset(3) == 2ull * 2 * 2048 * 4));
  CHECK(t.snapshots() == 64);
  CHECK(t.cache_bytes() == 6ull * 2 * 8 * 64 * 4096 * 2);
  CHECK((!t.verify.has_head && t.resident_decode.resident.empty()));
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
    CHECK((t.cache_of(layer).kept_bytes != 0) == c.recurrent_layers.has(layer));
  const plan::planned together = planned_of(c, types, "lfm2", plan::profiles::portable, 4096, {.slot_count = 4});
  const plan::table& b = together.table();
  CHECK((b.batch_snapshots() == 4 + 64 && b.batch_recurrent_bytes() == (4 + 68 + 2) * t.kept_bytes()));
  for (const plan::dispatch& each : b.batch.period)
    if (each.kernel == kernels::kernel::short_conv) {
      CHECK(each.groups[1] == 4);
      CHECK(each.specialization[kernels::interface_of(each.kernel).specialization_index("slot_floats")] == 2 * 2048);
      // A batch moves what it keeps of each of its tokens.
      const auto moved = [&](std::uint32_t tokens) { return plan::bytes_moved(b, b.batch, each, 0, tokens); };
      CHECK(moved(4) - moved(3) == 4ull * (3 + 1) * 2048 + 2ull * 4 * 2 * 2048);
    }
}

TEST_CASE("Granite 4.0 H and Nemotron-H are planned with their states", "[families]") {
  const weight_types types{dtype::q8_0, dtype::q8_0, dtype::q8_0};
  for (const decoder_config* c :
       {&models::granite_4_h_350m_config, &models::granite_4_h_micro_config, &models::granite_4_h_tiny_config,
        &models::nemotron_h_8b_config, &models::nemotron_nano_9b_v2_config, &models::nemotron_nano_12b_v2_config,
        &models::nemotron_3_nano_config})
    for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
      const plan::planned made = planned_of(*c, types, "hybrid", *target, 4096);
      const plan::table& t = made.table();
      CHECK(plan::verify(t).empty());
      const std::uint64_t layers = c->recurrent_layers.count(c->num_hidden_layers);
      const std::uint64_t state = std::uint64_t{c->delta_net.value_size()} * c->delta_net.key_dim;
      CHECK(t.kept_bytes() == layers * 4 * (state + 3ull * c->delta_net.qkv_size()));
      CHECK((!t.verify.has_head && t.resident_decode.resident.empty()));
      for (std::uint32_t layer = 0; layer < c->num_hidden_layers; ++layer) {
        const bool attends = !c->recurrent_layers.has(layer) && !c->ffn_layers.has(layer);
        CHECK((t.cache_of(layer).key_bytes != 0) == attends);
        CHECK((t.cache_of(layer).kept_bytes != 0) == c->recurrent_layers.has(layer));
      }
      for (const plan::dispatch& each : t.decode.period)
        if (each.kernel == kernels::kernel::rms_norm) CHECK(each.groups[0] == 8);  // of Nemotron-H, by groups of heads
      const plan::planned together = planned_of(*c, types, "hybrid", *target, 4096, {.slot_count = 4});
      CHECK(plan::verify(together.table()).empty());
    }
}

TEST_CASE("Falcon-H1 is planned with a state and a cache in each layer", "[families]") {
  const weight_types types{dtype::q8_0, dtype::q8_0, dtype::q8_0};
  for (const decoder_config* c : {&models::falcon_h1_05b_config, &models::falcon_h1_34b_config})
    for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
      const plan::planned made = planned_of(*c, types, "hybrid", *target, 4096);
      const plan::table& t = made.table();
      CHECK(plan::verify(t).empty());
      const std::uint64_t state = std::uint64_t{c->delta_net.value_size()} * c->delta_net.key_dim;
      CHECK(t.kept_bytes() == c->num_hidden_layers * 4 * (state + 3ull * c->delta_net.qkv_size()));
      for (std::uint32_t layer = 0; layer < c->num_hidden_layers; ++layer)
        CHECK((t.cache_of(layer).key_bytes != 0 && t.cache_of(layer).kept_bytes != 0));
      CHECK((!t.verify.has_head && t.resident_decode.resident.empty()));
      const plan::planned together = planned_of(*c, types, "hybrid", *target, 4096, {.slot_count = 4});
      CHECK(plan::verify(together.table()).empty());
      CHECK(together.table().batch_recurrent_bytes() != 0);
    }
}

TEST_CASE("Qwen3.5 and Qwen3-Next are planned with their states", "[families]") {
  const weight_types types{dtype::q8_0, dtype::q8_0, dtype::q8_0};
  for (const decoder_config* c : {&models::qwen35_08b_config, &models::qwen35_4b_config, &models::qwen35_27b_config,
                                  &models::qwen3next_80b_a3b_config})
    for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
      const plan::planned made = planned_of(*c, types, "qwen", *target, 4096);
      const plan::table& t = made.table();
      CHECK(plan::verify(t).empty());
      const std::uint64_t layers = c->num_hidden_layers / 4 * 3, heads = c->delta_net.value_heads;
      CHECK(t.kept_bytes() == layers * 4 * (heads * 128 * 128 + 3ull * c->delta_net.qkv_size()));
      CHECK((!t.verify.has_head && t.resident_decode.resident.empty()));
    }
}
