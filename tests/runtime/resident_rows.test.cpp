// SPDX-License-Identifier: MIT
// Compares the resident dispatch of a batch (shaders/layers_rows.comp; for more than eight slots
// shaders/layers_batch.comp; each in two forms), whose workgroups wait for each other, with the chain of dispatches,
// whose sums have another order. Where a wait times out, there are no logits, and passes use the chain from then on.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "runtime/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {
constexpr plan::batch_shape of_slots(std::uint32_t slot_count) {
  return {.slot_count = slot_count, .page_size = 16, .coded_products = plan::chunk_arithmetic::f16};
}
constexpr plan::batch_shape of_eight = of_slots(8);
constexpr decoder_config config_of(std::uint32_t hidden, std::uint32_t intermediate, std::uint32_t heads,
                                   std::uint32_t kv_heads, std::uint32_t head_dim) {
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
constexpr decoder_config normed_of(std::uint32_t hidden, std::uint32_t intermediate, std::uint32_t heads,
                                   std::uint32_t kv_heads, std::uint32_t head_dim) {
  decoder_config out = config_of(hidden, intermediate, heads, kv_heads, head_dim);
  out.model_type = architecture::gemma3;
  out.rms_norm_eps = 1e-6f;
  out.hidden_act = activation::gelu_tanh;
  out.rope_theta = 1'000'000.f;
  out.rope_local_base_freq = 10'000.f;
  out.sliding_window = 256;
  out.sliding_window_pattern = 2;
  return out;
}
// With norms before additions: tiles of the stream that are not shared evenly, by workgroups of 20 subgroups; two tasks
// of attention to a key; two steps of columns a subgroup.
constexpr decoder_config uneven = normed_of(2560, 2048, 8, 4, 256), two_tasks = normed_of(768, 2048, 4, 1, 256),
                         two_steps = normed_of(3840, 4096, 12, 6, 128);
// Many sessions: octets of the stream that are not shared evenly, nor stages of columns, gate and up by one subgroup a
// tile; the same shared evenly; a head to a key.
constexpr decoder_config batch_uneven = normed_of(2560, 10240, 8, 4, 256),
                         batch_even = normed_of(2048, 6144, 16, 8, 128), batch_own = normed_of(2048, 4096, 16, 16, 128);
// Heads in pairs and alone, a workgroup with one tile of the stream and with several, columns that not all subgroups
// have.
constexpr decoder_config paired = config_of(512, 1536, 8, 2, 64), single = config_of(256, 1024, 3, 1, 128),
                         wide = config_of(3072, 4096, 24, 8, 128), blocks = config_of(512, 2048, 8, 4, 64);
// Larger models: four, two and one heads to a key, and channels of 64. Gate and up, and q, k and v, are computed by one
// subgroup a tile and by two.
constexpr decoder_config shared_keys = config_of(4096, 14336, 32, 8, 128),
                         paired_keys = config_of(2048, 4096, 16, 8, 128),
                         short_heads = config_of(2048, 6144, 32, 16, 64), own_keys = config_of(2048, 4096, 16, 16, 128);

double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = double{found[i]} - double{expected[i]};
    apart += difference * difference, size += double{expected[i]} * double{expected[i]};
  }
  return std::isfinite(apart) ? std::sqrt(apart / size) : HUGE_VAL;
}

/// @param passes_of rows of passes that must leave the same bits too
void agrees(const plan::planned& made, const std::vector<std::uint32_t>& positions,
            const std::vector<std::uint32_t>& passes_of = {0}) {
  const checked_device on;
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  const plan::table& table = made.table();
  REQUIRE_FALSE(table.resident_batch.resident.empty());
  if (!runs(on.device, table, modules)) SKIP(not_run(on.device, table));
  const auto [found, expected] = fed_both_ways(on.device, table, modules, positions);
  for (std::size_t slot = 0; slot < positions.size(); ++slot) {
    CAPTURE(slot);
    CHECK(distance(found[slot], expected[slot]) < 0.02);
  }
  for (const std::uint32_t rows : passes_of)
    for (const std::uint32_t slot : {0u, 5u}) {
      CAPTURE(rows, slot);
      runtime::batch_executor alone(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
      CHECK(fed(alone, {slot}, positions, rows)[0] == found[slot]);
    }
}
// On both sides of the ends of attention's spans and of pages.
const std::vector<std::uint32_t> spans{0, 7, 255, 256, 300, 511, 512, 600}, short_ones{0, 1, 2, 3, 8, 15, 16, 17};
// Slots of a batch of 27, and of all 32.
const std::vector<std::uint32_t> many = [] {
  std::vector<std::uint32_t> out(27);
  for (std::uint32_t slot = 0; slot < out.size(); ++slot) out[slot] = slot * 13 % 40;
  return out;
}();
const std::vector<std::uint32_t> later = [] {
  std::vector<std::uint32_t> out(32);
  for (std::uint32_t slot = 0; slot < out.size(); ++slot) out[slot] = spans[slot % spans.size()];
  return out;
}();
}  // namespace

TEST_CASE(
    "workgroups that wait for each other give a batch the numbers of the chain, and a session those that it has alone",
    "[runtime][resident][resident][gpu]") {
  agrees(plan::planned::of<models::llama<paired, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::llama<paired, dtype::q4_0>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::llama<single, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::llama<wide, dtype::q4_1>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::llama<wide, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::llama<blocks, dtype::q4_k>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::llama<blocks, dtype::q6_k>>(plan::profiles::portable, 640, of_eight), short_ones);
}

TEST_CASE(
    "workgroups that wait for each other give a batch of a Gemma-3 the numbers of the chain, and a session those that "
    "it has alone",
    "[runtime][resident][resident][gpu]") {
  agrees(plan::planned::of<models::gemma3<uneven, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::gemma3<uneven, dtype::bf16>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::gemma3<uneven, dtype::q4_0>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::gemma3<uneven, dtype::q4_k>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::gemma3<two_tasks, dtype::q8_0>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::gemma3<two_tasks, dtype::q6_k>>(plan::profiles::portable, 640, of_eight),
         short_ones);
  agrees(plan::planned::of<models::gemma3<two_steps, dtype::q4_1>>(plan::profiles::portable, 640, of_eight), spans);
  agrees(plan::planned::of<models::gemma3<two_steps, dtype::f16>>(plan::profiles::portable, 640, of_eight), short_ones);
  agrees(plan::planned::of<models::gemma3<two_steps, dtype::q8_0>>(plan::profiles::portable, 640, of_eight),
         short_ones);
}

TEST_CASE(
    "workgroups that wait for each other give a batch of many the numbers of the chain, and a session those that it "
    "has alone",
    "[runtime][resident][resident][gpu]") {
  agrees(plan::planned::of<models::llama<shared_keys, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(32)), later,
         {0, 8, 16});
  agrees(plan::planned::of<models::llama<shared_keys, dtype::q4_0>>(plan::profiles::portable, 640, of_slots(32)), many,
         {0, 8, 16});
  agrees(plan::planned::of<models::llama<paired_keys, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(16)), spans,
         {0, 8});
  agrees(plan::planned::of<models::llama<short_heads, dtype::q4_1>>(plan::profiles::portable, 640, of_slots(16)), spans,
         {0, 8});
  agrees(plan::planned::of<models::llama<own_keys, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::llama<paired_keys, dtype::q4_k>>(plan::profiles::portable, 640, of_slots(16)),
         short_ones);
  agrees(plan::planned::of<models::llama<paired_keys, dtype::q6_k>>(plan::profiles::portable, 640, of_slots(32)), many);
}

TEST_CASE(
    "workgroups that wait for each other give a batch of many of a Gemma-3 the numbers of the chain, and a session "
    "those that it has alone",
    "[runtime][resident][resident][gpu]") {
  agrees(plan::planned::of<models::gemma3<batch_uneven, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(32)),
         later, {0, 8, 16});
  agrees(plan::planned::of<models::gemma3<batch_uneven, dtype::bf16>>(plan::profiles::portable, 640, of_slots(32)),
         many, {0, 8, 16});
  agrees(plan::planned::of<models::gemma3<batch_uneven, dtype::q4_k>>(plan::profiles::portable, 640, of_slots(16)),
         short_ones);
  agrees(plan::planned::of<models::gemma3<uneven, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(16)), spans,
         {0, 8});
  agrees(plan::planned::of<models::gemma3<uneven, dtype::q4_0>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::gemma3<batch_even, dtype::f16>>(plan::profiles::portable, 640, of_slots(32)), later,
         {0, 8});
  agrees(plan::planned::of<models::gemma3<batch_even, dtype::q4_1>>(plan::profiles::portable, 640, of_slots(16)),
         spans);
  agrees(plan::planned::of<models::gemma3<batch_own, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(32)), many);
  agrees(plan::planned::of<models::gemma3<batch_own, dtype::q6_k>>(plan::profiles::portable, 640, of_slots(16)),
         short_ones);
}

TEST_CASE("a batch whose workgroups time out has no numbers, and the chain goes on",
          "[runtime][resident][resident][gpu]") {
  wait_in_vain(plan::planned::of<models::llama<paired, dtype::q8_0>>(plan::profiles::portable, 640, of_eight));
  wait_in_vain(plan::planned::of<models::gemma3<two_tasks, dtype::q8_0>>(plan::profiles::portable, 640, of_eight));
  wait_in_vain(plan::planned::of<models::llama<paired_keys, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(16)));
  wait_in_vain(plan::planned::of<models::gemma3<uneven, dtype::q8_0>>(plan::profiles::portable, 640, of_slots(16)));
}
