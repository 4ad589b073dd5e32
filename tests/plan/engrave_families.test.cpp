// SPDX-License-Identifier: MIT
// Real plans of Llama, Mistral, Mixtral and Gemma 3, counted: dispatches, barriers, weights, and what their caches
// take.
#include "intaglio/plan/engrave.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"

using namespace intaglio;
using kernels::kernel;

namespace {
struct mistral_q4_1 : models::llama<models::mistral_7b_v01_config, dtype::q4_1, dtype::q6_k> {};
struct mistral_v02 : models::llama<models::mistral_7b_v02_config, dtype::q8_0> {};
struct gemma_4b : models::gemma3<models::gemma3_4b_config, dtype::q8_0> {};
constexpr const plan::table& windowed = plan::engraved<mistral_q4_1, plan::profiles::portable>::table;
constexpr const plan::table& unbounded = plan::engraved<mistral_v02, plan::profiles::portable>::table;
constexpr const plan::table& gemma = plan::engraved<gemma_4b, plan::profiles::portable, 32'768>::table;
constexpr const plan::table& stories =
    plan::engraved<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32>,
                   plan::profiles::cpu>::table;

// Llama and Mistral have five dispatches a layer in decode and in an exact chunk, and three around the layers; each
// waits for the previous one. Four more convert activations to f16.
static_assert(windowed.decode.period.size() == 5 && windowed.prefill.period.size() == 9 &&
              stories.prefill.period.size() == 5);
static_assert(windowed.decode.dispatch_count() == 32 * 5 + 3 && windowed.decode.barrier_count() == 32 * 5 + 2);
static_assert(windowed.prefill.dispatch_count() == 32 * 9 + 1 && windowed.prefill.barrier_count() == 32 * 9);
static_assert(unbounded.decode.dispatch_count() == 163 && stories.decode.dispatch_count() == 5 * 5 + 4);

// Gemma 3: eight a layer, of two kinds; 34 layers are five times six and four.
static_assert(gemma.decode.block(0).size() == 8 && gemma.decode.block(1).size() == 8 &&
              gemma.decode.period.size() == 16);
static_assert(gemma.decode.dispatch_count() == 34 * 8 + 3 && gemma.decode.barrier_count() == 34 * 8 + 2 &&
              gemma.prefill.dispatch_count() == 34 * 12 + 1);
static_assert(gemma.decode.times(gemma.decode.block(0)[0]) == 29 && gemma.decode.times(gemma.decode.block(1)[0]) == 5);
static_assert(gemma.decode.stretch(4)[0].block == 0 && gemma.decode.stretch(5)[0].block == 1 &&
              gemma.decode.stretch(33)[0].block == 0);

// Mixtral: eight a layer: q, k and v, attention, its projection; router, choice, gate and up of the chosen experts,
// their down, their weighed sum. One dispatch does all experts of all tokens, and a token reads two of eight.
struct mixtral_q8_0 : models::mixtral<models::mixtral_8x7b_config, dtype::q8_0> {};
constexpr const plan::table& mixture = plan::engraved<mixtral_q8_0, plan::profiles::portable, 4096>::table;
static_assert(mixture.decode.period.size() == 8 &&
              mixture.prefill.period.size() ==
                  13);  // f16 conversions in front of q, k and v, the projection and the experts' products; lists
static_assert(mixture.decode.dispatch_count() == 32 * 8 + 3 && mixture.decode.barrier_count() == 32 * 8 + 2 &&
              mixture.prefill.dispatch_count() == 32 * 13 + 1);
// A chunk's 1,024 pairs of token and expert, 128 an expert on the average, are 15 lists of 128 at most: the experts'
// weights are read 15 times at most, not 1,024.
static_assert(mixture.decode.period[5].groups[1] == 2 && mixture.prefill.period[5].kernel == kernel::matmul &&
              mixture.prefill.period[7].kernel == kernel::expert_tiles);
static_assert(mixture.prefill.period[9].kernel == kernel::matmul_chunk && mixture.prefill.period[9].groups[0] == 15 &&
              mixture.prefill.period[10].kernel == kernel::quantize_f16 &&
              mixture.prefill.period[10].groups[1] == 15 * 128);
static_assert(mixture.decode.period[5].weight_bytes == 2 * 28672ull * 4096 / 32 * 34 + 4 * 4096 &&
              mixture.prefill.period[9].weight_bytes == 8 * 28672ull * 4096 / 32 * 34);
static_assert(mixture.decode.period[5].activation->name == "silu" &&
              mixture.decode.period[6].weight_bytes == 2 * 14336ull * 4096 / 32 * 34);

// Bytes that one token reads: 20 for each 32 weights of Q4_1, 210 for each 256 of Q6_K, norms, a row of the embedding,
// 512 for the rotation.
constexpr std::uint64_t body = 32ull * (6144 * 4096 + 4096 * 4096 + 28672ull * 4096 + 4096ull * 14336);
static_assert(windowed.decode.weight_bytes() == body / 32 * 20 + 32'000ull * 4096 / 256 * 210 +
                                                    32ull * (2 * 4096 * 4 + 512) + 4 * 4096 + 4096 / 256 * 210);

// A window of 4,096 and chunks of 512 take 18 spans of 256 positions, not 32,768; keys and values of 8 heads of 128 in
// f16.
static_assert(windowed.caches[0].positions == 4608 && windowed.caches[0].window == 4096);
static_assert(windowed.cache_bytes() == 32ull * 2 * 8 * 128 * 4608 * 2 &&
              unbounded.cache_bytes() == 32ull * 2 * 8 * 128 * 32'768 * 2);
static_assert(windowed.cache_bytes() * 7 < unbounded.cache_bytes());
// 29 of Gemma's layers keep 1,024 + 511 positions, whole spans of them, and 5 keep all; 4 heads of 256.
static_assert(gemma.caches[0].positions == 1536 && gemma.caches[1].positions == 32'768 && gemma.caches[1].window == 0);
static_assert(gemma.cache_bytes() == 2ull * 4 * 256 * 2 * (29 * 1536 + 5 * 32'768));
// No ring where the context is no longer.
constexpr const plan::table& brief = plan::engraved<mistral_q4_1, plan::profiles::portable, 4096>::table;
static_assert(brief.caches[0].positions == 4096);

constexpr std::uint32_t constant(const plan::dispatch& d, std::string_view name) {
  return d.specialization[kernels::interface_of(d.kernel).specialization_index(name)];
}
constexpr const plan::dispatch& first(std::span<const plan::dispatch> part, kernel which) {
  for (const auto& d : part)
    if (d.kernel == which) return d;
  return part.front();
}
constexpr bool is_attention(const plan::dispatch& d) {
  return d.kernel == kernel::attention || d.kernel == kernel::attention_f16;
}
static_assert([] {
  for (const auto* s : {&gemma.decode, &gemma.prefill})
    for (const auto& d : s->period)
      if (is_attention(d) &&
          (constant(d, "ring") != (d.block == 0) || constant(d, "window") != (d.block == 0 ? 1024u : 0u) ||
           constant(d, "context") != gemma.caches[d.block].positions))
        return false;
  return true;
}());
// Spans of a window and one more, not those of the context.
static_assert(first(windowed.decode.period, kernel::attention).groups == std::array{32u, 1u, 17u} &&
              first(unbounded.decode.period, kernel::attention).groups == std::array{32u, 1u, 128u});

// Chunks of coded weights are multiplied as f16, weights staying where decode has them, and have no head; a pass
// over drafts has decode's kernels.
constexpr bool has_kernel(const plan::sequence& s, kernel which) {
  for (const auto part : {s.prologue, s.period, s.epilogue})
    for (const auto& d : part)
      if (d.kernel == which) return true;
  return false;
}
static_assert([] {
  for (const auto* t : {&windowed, &gemma}) {
    for (const auto* s : {&t->prefill, &t->logits})
      for (const kernel which : {kernel::matmul_chunk, kernel::quantize_f16, kernel::attention_f16})
        if (!has_kernel(*s, which) || has_kernel(t->verify, which) || has_kernel(t->decode, which)) return false;
    if (t->prefill.has_head || has_kernel(t->prefill, kernel::matmul) ||
        has_kernel(t->prefill, kernel::attention_chunk))
      return false;
  }
  return true;
}());
// Drafts: every product of blocks reads what `fixed` made of its input, as in a batch, and what it writes into a cache
// goes around a ring's end.
static_assert(has_kernel(windowed.verify, kernel::fixed) && has_kernel(windowed.verify, kernel::matmul_batch) &&
              !has_kernel(windowed.verify, kernel::matmul) && has_kernel(gemma.verify, kernel::matmul_batch));
static_assert(windowed.verify.dispatch_count() == 32 * 9 + 5 && windowed.verify.barrier_count() == 32 * 9 + 4 &&
              gemma.verify.dispatch_count() == 34 * 12 + 5);
static_assert(constant(first(windowed.verify.period, kernel::matmul_batch), "ring") == 1 &&
              constant(first(unbounded.verify.period, kernel::matmul_batch), "ring") == 0);
static_assert(!has_kernel(stories.verify, kernel::fixed));
constexpr const plan::table& exact = plan::engraved<mistral_v02, plan::profiles::exact>::table;
static_assert(!has_kernel(exact.prefill, kernel::quantize_f16) && has_kernel(exact.prefill, kernel::matmul) &&
              has_kernel(exact.prefill, kernel::attention_chunk));
static_assert(exact.weights.size() == unbounded.weights.size() && exact.weight_bytes() == unbounded.weight_bytes());

/// Tables of rotary embedding among the weights.
constexpr std::size_t rotations(const plan::table& t) {
  std::size_t out = 0;
  for (const auto& w : t.weights)
    out += w.layout == plan::weight_layout::rope_turns && !w.per_layer && w.source_count == 0;
  return out;
}
static_assert(rotations(windowed) == 1 && rotations(gemma) == 2 && rotations(stories) == 1);

// Tied: one table for embedding and head.
static_assert([] {
  std::size_t tables = 0;
  for (const auto& w : gemma.weights) tables += w.source_count != 0 && w.sources[0] == "token_embd.weight";
  return tables;
}() == 1);
}  // namespace

TEST_CASE("no op is left out and none is done twice", "[plan][engrave]") {
  const auto check = [](const auto& graph, const plan::table& table) {
    ir::trace t;
    graph.forward(t);
    for (const auto* s : {&table.decode, &table.prefill, &table.logits}) {
      std::vector<int> done(t.graph().ops.size());
      for (const auto part : {s->prologue, s->period, s->epilogue})
        for (const auto& d : part)
          for (std::size_t i = 0; i < d.op_count; ++i) ++done[d.ops[i]];
      for (std::size_t i = 0; i < done.size(); ++i)
        if (s->has_head || t.graph().ops[i].where != ir::section::epilogue) CHECK(done[i] == 1);
    }
  };
  check(mistral_q4_1::graph(), windowed);
  check(gemma_4b::graph(), gemma);
  check(models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32>::graph(), stories);
}

TEST_CASE("windows, kinds of layer and rotations count in the hash", "[plan][engrave]") {
  const auto hash_with = [](auto&& change) {
    plan::table t = gemma;
    change(t);
    return plan::hash_of(t);
  };
  CHECK(hash_with([](plan::table&) {}) == gemma.hash);
  CHECK(hash_with([](plan::table& t) { t.caches[0].positions += 256; }) != gemma.hash);
  CHECK(hash_with([](plan::table& t) { t.caches[0].window += 1; }) != gemma.hash);
  CHECK(hash_with([](plan::table& t) { t.pattern.blocks[0] = 1; }) != gemma.hash);
  std::vector<plan::weight> weights(gemma.weights.begin(), gemma.weights.end());
  for (auto& w : weights)
    if (w.layout == plan::weight_layout::rope_turns) w.rope.theta *= 2;
  CHECK(hash_with([&](plan::table& t) { t.weights = weights; }) != gemma.hash);
}

TEST_CASE("a ring holds what a pass needs until it is written past", "[plan]") {
  const plan::layer_cache ring{.positions = 1536, .window = 1024};
  CHECK(ring.holds(1536, 1536));
  CHECK(ring.holds(100, 1536));
  CHECK_FALSE(ring.holds(100, 1537));  // position 0 is gone, which 100 sees
  CHECK(ring.holds(3000, 3512 + 1));   // the oldest that 3000 sees is 1977
  CHECK_FALSE(ring.holds(3000, 3512 + 2));
  const plan::layer_cache all{.positions = 4096};
  CHECK(all.holds(0, 4096));
}
