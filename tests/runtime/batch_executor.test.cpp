// SPDX-License-Identifier: MIT
// The kernels of a batch, with made-up weights of blocks, against the CPU reference: by packed dot products and
// without, slots that fill tiles and that do not.
#include "intaglio/runtime/batch_executor.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

constexpr decoder_config one_layer{.model_type = architecture::llama,
                                   .hidden_size = 256,
                                   .intermediate_size = 768,
                                   .num_hidden_layers = 1,
                                   .num_attention_heads = 8,
                                   .num_key_value_heads = 2,
                                   .head_dim = 32,
                                   .vocab_size = 1024,
                                   .max_position_embeddings = 1024,
                                   .rope_theta = 500'000.f,
                                   .hidden_act = activation::silu,
                                   .tie_word_embeddings = false};

/// Tokens that each slot draws in three passes, the last slot at a temperature.
std::vector<std::vector<std::uint32_t>> drawn_by(runtime::batch_executor& run, float temperature) {
  const std::uint32_t slot_count = run.table().shape.slot_count;
  for (std::uint32_t slot = 0; slot < slot_count; ++slot) {
    const std::int32_t token = static_cast<std::int32_t>(3 + 70 * slot);
    run.set(slot, {std::span(&token, 1),
                   pages_of(run.table(), slot),
                   run.table().context,
                   true,
                   {.temperature = slot + 1 == slot_count ? temperature : 0, .seed = 5}});
  }
  run.decode(slot_count, 3, true, 100);
  std::vector<std::vector<std::uint32_t>> out(slot_count);
  for (std::uint32_t slot = 0; slot < slot_count; ++slot)
    for (std::uint32_t i = 0; i < 3; ++i) out[slot].push_back(run.drawn(slot, i));
  return out;
}
/// On GPUs a pass in which no session samples has a sampler of its own: it draws the same tokens, the most probable
/// ones, as beside a session that samples.
void check_greedy(runtime::batch_executor& run) {
  const std::uint32_t slot_count = run.table().shape.slot_count, vocabulary = run.table().config->vocab_size;
  const auto alone = drawn_by(run, 0);
  for (std::uint32_t slot = 0; slot < slot_count; ++slot) {
    const auto logits = run.logits(slot);
    CHECK(alone[slot].back() == static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin()));
    CHECK(alone[slot].front() < vocabulary);
  }
  const auto mixed = drawn_by(run, 4);
  for (std::uint32_t slot = 0; slot + 1 < slot_count; ++slot) CHECK(mixed[slot] == alone[slot]);
  CHECK(mixed.back() != alone.back());  // of a seed with which another token is drawn
  CHECK(drawn_by(run, 0) == alone);
}

template <dtype W>
void check_codec(const gpu::device& on, bool dot, const plan::batch_shape& shape) {
  const plan::planned made =
      plan::planned::of<models::llama<one_layer, W, W, dtype::f32>>(plan::profiles::portable, 128, shape);
  plan::device_class of = gpu_class(on);
  of.integer_dot = dot;
  runtime::batch_executor run(on, made.table(), runtime::synthetic_weights(on, made.table()), of, nullptr);
  const runtime::kernel_fault fault = run.prove();
  INFO(name(W) << (dot ? ", dot products" : "") << ": " << fault.label << " off by " << fault.apart);
  CHECK(fault.kernel == "");
  check_greedy(run);
}

}  // namespace

TEST_CASE("products of a batch agree with the reference: offsets, halves of blocks and neither", "[once_plain]") {
  checked_device on;
  const bool dot = on.device.has(gpu::feature::shader_integer_dot_product);
  check_codec<dtype::q4_0>(on.device, dot, {.slot_count = 16, .page_size = 64});
  check_codec<dtype::q4_k>(on.device, dot, {.slot_count = 3, .page_size = 8});
  check_codec<dtype::q6_k>(on.device, false, {.slot_count = 3, .page_size = 8});
}

TEST_CASE("products of a batch in f16 agree with the reference", "[once]") {
  checked_device on;
  check_codec<dtype::q4_k>(on.device, false,
                           {.slot_count = 16, .page_size = 64, .coded_products = plan::chunk_arithmetic::f16});
  check_codec<dtype::bf16>(on.device, false,
                           {.slot_count = 3, .page_size = 8, .coded_products = plan::chunk_arithmetic::f16});
}

TEST_CASE("a chunk of a prompt with more tokens than it has room for is refused by a batch", "[once]") {
  checked_device on;
  const plan::planned made = plan::planned::of<models::llama<one_layer, dtype::q4_0, dtype::q4_0, dtype::f32>>(
      plan::profiles::cpu, 128, {.slot_count = 2, .page_size = 8});
  runtime::batch_executor run(on.device, made.table(), runtime::synthetic_weights(on.device, made.table()),
                              gpu_class(on.device), nullptr);
  const std::vector<std::int32_t> tokens(made.table().prefill.max_tokens + 1, 7);
  CHECK_THROWS_WITH(run.prefill(0, 0, tokens, 0, 0, 100),
                    Catch::Matchers::ContainsSubstring("tokens of a chunk: expected at most 32, found 33"));
}
