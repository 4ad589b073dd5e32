// SPDX-License-Identifier: MIT
// Runs modules of a batch's resident dispatch on the CPU, instruction for instruction, products of cooperative matrices
// among them. With ternary weights each session's stream has the bits of its own chain's reference. Products of f16
// round their inputs, so there the streams are close to those of exact products.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "intaglio/kernels/spirv/layers_rows.hpp"
#include "intaglio/kernels/spirv/layers_rows_normed.hpp"
#include "intaglio/kernels/spirv/layers_ternary_rows.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "reference/interpreted_batch.hpp"

using namespace intaglio;

namespace resident_batches {
namespace {
constexpr decoder_config llama{.model_type = architecture::llama,
                               .hidden_size = 128,
                               .intermediate_size = 512,
                               .num_hidden_layers = 2,
                               .num_attention_heads = 2,
                               .num_key_value_heads = 1,
                               .head_dim = 64,
                               .vocab_size = 128,
                               .max_position_embeddings = 512,
                               .rope_theta = 10'000.f,
                               .rms_norm_eps = 1e-5f};
template <class Change>
constexpr decoder_config with(decoder_config out, Change change) {
  change(out);
  return out;
}
constexpr decoder_config gemma = with(llama, [](decoder_config& c) {
  c.model_type = architecture::gemma3, c.head_dim = 128, c.hidden_act = activation::gelu_tanh;
  c.sliding_window = 512, c.sliding_window_pattern = 2;
});
template <std::uint32_t width>
constexpr decoder_config ternary = with(
    llama, [](decoder_config& c) { c.model_type = architecture::bitnet, c.hidden_size = c.intermediate_size = width; });
/// A plan whose device runs this number of workgroups at once.
template <class Model>
plan::planned planned(std::uint32_t workgroups, std::uint32_t slot_count) {
  plan::profile target = plan::profiles::portable;
  target.work.layers_parts = workgroups;
  return plan::planned::of<Model>(target, Model::config.max_position_embeddings,
                                  {.slot_count = slot_count, .coded_products = plan::chunk_arithmetic::f16});
}
/// The distance of two streams as a part of the first one's length.
double distance(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  double apart = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = std::bit_cast<float>(a[i]), y = std::bit_cast<float>(b[i]);
    apart += (x - y) * (x - y), length += x * x;
  }
  return std::sqrt(apart / length);
}
/// Rows at the beginning of a cache, at a span's end and after it, and a slot without a session.
const std::vector<interpreted::row> rows{{0, 17}, {1, 4}, {255, 99}, {300, 5, true}, {300, 127}};

struct both {
  std::vector<std::uint32_t> chains, module;
};
/// A pass in both ways. @param which the plan's kernel
both pass(const plan::planned& made, kernels::kernel which, std::span<const std::byte> module, bool same_caches,
          std::span<const interpreted::row> rows = resident_batches::rows) {
  const plan::table& table = made.table();
  REQUIRE_FALSE(table.resident_batch.resident.empty());
  REQUIRE(table.resident_batch.resident[0].kernel == which);
  interpreted::batch_both_ways run(table, module);
  const auto [chains, one] = run.pass(rows);
  CHECK_FALSE(run.timed_out());
  if (same_caches)
    for (std::uint32_t slot = 0; slot < rows.size(); ++slot)
      if (!rows[slot].unused) CHECK(run.pool_agrees(interpreted::session_of(rows, slot), rows[slot].position));
  return {chains, one};
}
/// 7e-4 was seen: f16 has 11 bits.
void is_close(const plan::planned& made, kernels::kernel which, std::span<const std::byte> module) {
  const both streams = pass(made, which, module, false);
  const double apart = distance(streams.chains, streams.module);
  UNSCOPED_INFO("distance " << apart);
  CHECK(apart < 2e-3);
  CHECK(apart > 0);
}
}  // namespace

TEST_CASE("all layers of a batch of ternary weights have the chains' bits", "[reference][machine][unsanitized]") {
  const auto same_bits = [](const plan::planned& made, std::span<const interpreted::row> of = rows) {
    const both streams = pass(made, kernels::kernel::layers_ternary_rows,
                              kernels::whole(kernels::spirv::layers_ternary_rows_parts), true, of);
    CHECK(streams.chains == streams.module);
  };
  same_bits(planned<models::bitnet_b158<ternary<128>>>(8, 8));
  // Drafts: three rows of one session across a span's end, and two of another one in slots in no order.
  const std::vector<interpreted::row> drafts{{254, 9},           {40, 3},      {255, 11, false, 1},
                                             {256, 2, false, 3}, {0, 0, true}, {41, 8, false, 2}};
  same_bits(planned<models::bitnet_b158<ternary<128>>>(8, 8), drafts);
  same_bits(planned<models::bitnet_b158<ternary<256>>>(16, 16));  // two groups of eight rows, which share their codes
}
TEST_CASE("all layers of up to eight sessions are close to exact products", "[reference][machine][unsanitized]") {
  const auto module = kernels::whole(kernels::spirv::layers_rows_parts);
  is_close(planned<models::llama<llama, dtype::q4_0>>(4, 8), kernels::kernel::layers_rows, module);
  is_close(planned<models::llama<llama, dtype::q8_0>>(4, 8), kernels::kernel::layers_rows, module);
}
TEST_CASE("all layers of up to eight sessions of a Gemma 3 are close to exact products",
          "[reference][machine][unsanitized]") {
  is_close(planned<models::gemma3<gemma, dtype::q8_0>>(4, 8), kernels::kernel::layers_rows_normed,
           kernels::whole(kernels::spirv::layers_rows_normed_parts));
}

}  // namespace resident_batches
