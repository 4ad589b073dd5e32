// SPDX-License-Identifier: MIT
// Real plans, counted: what changes here changes the speed of every token.
#include "intaglio/plan/engrave.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"

using namespace intaglio;
using models::bitnet_2b_4t;
using models::fable;

namespace {
constexpr const plan::table& two_b = plan::engraved<bitnet_2b_4t, plan::profiles::portable>::table;
constexpr const plan::table& story = plan::engraved<fable, plan::profiles::cpu>::table;

// Decode: five dispatches a layer and three around them, each waiting for the one before.
static_assert(two_b.decode.period.size() == 5 && two_b.decode.prologue.size() + two_b.decode.epilogue.size() == 3);
static_assert(two_b.decode.dispatch_count() == 30 * 5 + 3 && two_b.decode.barrier_count() == 30 * 5 + 2);
static_assert(two_b.prefill.dispatch_count() == 30 * 9 + 1 && two_b.prefill.barrier_count() == 30 * 9);
static_assert(two_b.verify.dispatch_count() == 30 * 9 + 5 && two_b.verify.barrier_count() == 30 * 9 + 4 &&
              two_b.verify.max_tokens == 16 && two_b.verify.has_sampler);
static_assert(story.decode.dispatch_count() == 44 && story.prefill.dispatch_count() == 73);
static_assert(two_b.logits.has_head && !two_b.logits.has_sampler && !two_b.prefill.has_head &&
              two_b.decode.has_sampler);

// Bytes that one token reads: 2 bits for each ternary weight, 2 bytes for each of the head's, norms and scales in f32.
constexpr std::uint64_t two_b_body = 30ull * (3840 * 2560 + 2560 * 2560 + 13824 * 2560 + 2560 * 6912) / 4;
constexpr std::uint64_t two_b_norms = 30ull * 4 * (3 * 2560 + 6912) + 30ull * 4 * 7 + 4 * 2560;
static_assert(two_b.decode.weight_bytes() == two_b_body + two_b_norms + 2ull * 128'256 * 2560 + 2 * 2560);

// The arena: the stream, two values at a time, the logits; the widest pair of a chunk.
static_assert(story.decode.arena_bytes == 44'288);
static_assert(story.prefill.arena_bytes <= 32 * (256 * 4 + 1024 * 4 + 1024 + 8) + 4 * plan::arena_alignment);
static_assert(two_b.decode.values.size() == 8);
static_assert(two_b.decode.arena_bytes == 1'332'224 && two_b.prefill.arena_bytes == 22'941'696);

// Weights: tied, so the table is there once; 13 a layer.
constexpr auto count_named(const plan::table& t, std::string_view name) {
  std::size_t n = 0;
  for (const auto& w : t.weights) n += w.sources[0] == name && w.layout == plan::weight_layout::matrix;
  return n;
}
static_assert(count_named(two_b, "token_embd.weight") == 1 && two_b.weights.size() == 14);
static_assert(two_b.caches[0].key_bytes == 5ull * 128 * 4096 * 2 &&
              two_b.caches[0].value_bytes == two_b.caches[0].key_bytes);

// A screened head: a dispatch more, a byte and not two for each of its weights, which are kept as well; nothing else
// changes.
constexpr const plan::table& screened = plan::engraved<models::bitnet_2b_4t, plan::profiles::screened>::table;
static_assert(screened.decode.dispatch_count() == two_b.decode.dispatch_count() + 1 &&
              screened.resident_decode.dispatch_count() == two_b.resident_decode.dispatch_count() + 1);
static_assert(screened.decode.weight_bytes() == two_b.decode.weight_bytes() - 128'256ull * 2560 + 4 * 128'256 &&
              screened.prefill.weight_bytes() == two_b.prefill.weight_bytes());
static_assert(screened.weights.size() == two_b.weights.size() + 2 && count_named(screened, "token_embd.weight") == 1);

// The period is planned once: 120 layers give the same arrays as 30.
constexpr decoder_config deep_config = [] {
  auto c = models::bitnet_2b_4t_config;
  c.num_hidden_layers = 120;
  return c;
}();
constexpr const plan::table& deep = plan::engraved<models::bitnet_b158<deep_config>, plan::profiles::portable>::table;
static_assert(deep.decode.period.size() == 5 && deep.decode.dispatch_count() == 603 &&
              deep.decode.arena_bytes == two_b.decode.arena_bytes);
static_assert(deep.hash != two_b.hash, "every command of a recording counts");
static_assert(two_b.model == "bitnet_2b_4t" && story.model == "fable" && deep.model.empty(),
              "a name is the model's own or none");

// SiLU and f32 activations: as many dispatches a token, and no norm of its own in prefill either.
constexpr decoder_config older_config = [] {
  auto c = models::fable_config;
  c.hidden_act = activation::silu;
  c.activation_type = dtype::f32;
  return c;
}();
constexpr const plan::table& older = plan::engraved<models::bitnet_b158<older_config>, plan::profiles::cpu>::table;
static_assert(older.decode.dispatch_count() == 8 * 5 + 4 && older.prefill.dispatch_count() == 8 * 5 + 1);
static_assert(older.decode.weight_bytes() == story.decode.weight_bytes() && older.hash != story.hash);

// The sampler gets more subgroups where the vocabulary is long, whatever the profile: a subgroup's loops have an end in
// llvmpipe.
constexpr decoder_config wordy_config = [] {
  auto c = models::fable_config;
  c.vocab_size = 128'256;
  return c;
}();
constexpr const plan::table& wordy = plan::engraved<models::bitnet_b158<wordy_config>, plan::profiles::cpu>::table;
static_assert(story.decode.epilogue.back().subgroups == 1 && wordy.decode.epilogue.back().subgroups == 16);

// A head of its own is one more weight, read instead of the embedding.
constexpr decoder_config untied_config = [] {
  auto c = models::fable_config;
  c.tie_word_embeddings = false;
  return c;
}();
constexpr const plan::table& untied = plan::engraved<models::bitnet_b158<untied_config>, plan::profiles::cpu>::table;
static_assert(count_named(untied, "output.weight") == 1 && count_named(untied, "token_embd.weight") == 1);
static_assert(untied.global_weight_bytes == story.global_weight_bytes + 2ull * 4096 * 256 &&
              untied.decode.weight_bytes() == story.decode.weight_bytes());

// Embedding and head may be held in other types.
constexpr const plan::table& wide =
    plan::engraved<models::bitnet_b158<untied_config, dtype::i2_s, dtype::i8, dtype::f32>, plan::profiles::cpu>::table;
static_assert(wide.global_weight_bytes == story.global_weight_bytes + (2 * 4ull - 2) * 4096 * 256);

// A smaller context is a choice of the program.
constexpr const plan::table& brief = plan::engraved<fable, plan::profiles::cpu, 128>::table;
static_assert(brief.caches[0].key_bytes * 4 == story.caches[0].key_bytes && brief.hash != story.hash);
// Keys come in octets of positions.
constexpr const plan::table& uneven = plan::engraved<fable, plan::profiles::cpu, 125>::table;
static_assert(uneven.caches[0].key_bytes == 2ull * 64 * 128 * 4 && uneven.caches[0].value_bytes == 2ull * 64 * 125 * 4);

// In decode a GPU parts a head's context into spans; of a chunk a workgroup has 8 tokens.
constexpr auto attention_of(const plan::sequence& s) {
  for (const auto& d : s.period)
    if (d.kernel == kernels::kernel::attention || d.kernel == kernels::kernel::attention_chunk) return d.groups;
  return std::array<std::uint32_t, 3>{};
}
static_assert(attention_of(two_b.decode) == std::array{20u, 1u, 16u} &&
              attention_of(two_b.prefill) == std::array{20u, 512u / 8, 1u});
static_assert(attention_of(story.decode) == std::array{2u, 1u, 1u} &&
              attention_of(story.prefill) == std::array{2u, 32u, 1u});

/// Hash of a plan with one dispatch of a decode layer changed by `change`.
std::uint64_t hash_with(const std::function<void(plan::dispatch&)>& change) {
  plan::table t = story;
  std::vector<plan::dispatch> period(t.decode.period.begin(), t.decode.period.end());
  change(period[2]);
  t.decode.period = period;
  return plan::hash_of(t);
}
std::uint64_t hash_with_table(const std::function<void(plan::table&)>& change) {
  plan::table t = story;
  change(t);
  return plan::hash_of(t);
}
}  // namespace

TEST_CASE("whatever shapes recording or memory changes the hash", "[plan][engrave]") {
  const std::uint64_t same = story.hash;
  CHECK(hash_with([](plan::dispatch&) {}) == same);
  CHECK(hash_with([](plan::dispatch& d) { d.label = {}; }) == same);
  CHECK(hash_with([](plan::dispatch& d) { d.barrier = !d.barrier; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.subgroups += 1; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.groups[1] += 1; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.least_groups += 1; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.specialization[3] += 1; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.push[0].offset += 256; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.push[0].slot += 1; }) != same);
  CHECK(hash_with([](plan::dispatch& d) { d.push[0].where = plan::region::ring; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.model = "another"; }) == same);
  CHECK(hash_with_table([](plan::table& t) { t.decode.layers += 1; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.logits.residual_offset += 256; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.logits.logits_offset += 256; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.ring_size *= 2; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.resident_decode.resident = {}; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.resident_decode.resident_long = t.resident_decode.resident; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.resident_decode.long_from = 256; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.resident_decode.blank_bytes += 4; }) != same);
  CHECK(hash_with_table([](plan::table& t) { t.weights = t.weights.first(t.weights.size() - 1); }) != same);
}

TEST_CASE("the sequences of a model share weights and cache", "[plan][engrave]") {
  for (const auto* t : {&two_b, &story, &older}) {
    REQUIRE(plan::verify(*t).empty());
    std::uint64_t decode_matrices = 0, prefill_matrices = 0;
    const auto is_product = [](const plan::dispatch& d) {
      return d.kernel == kernels::kernel::ternary_matmul || d.kernel == kernels::kernel::ternary_chunk ||
             d.kernel == kernels::kernel::ternary_float;
    };
    for (const auto& d : t->decode.period) decode_matrices += is_product(d);
    for (const auto& d : t->prefill.period) prefill_matrices += is_product(d);
    CHECK(decode_matrices == 4);
    CHECK(prefill_matrices == 4);
    const plan::profile& target = t == &two_b ? plan::profiles::portable : plan::profiles::cpu;
    CHECK(t->max_tokens == (std::max)(t->prefill.max_tokens, target.long_prefill_tokens));
    CHECK(t->progress_offset() ==
          4ull * (kernels::state::words(t->max_tokens, t->context) + t->config->num_attention_heads + t->max_tokens));
    CHECK(t->state_bytes() ==
          t->progress_offset() + (t->resident_decode.resident.empty()
                                      ? 0
                                      : kernels::layers::progress_bytes(t->config->num_hidden_layers)));
  }
}

template <class Model>
void each_op_once(const plan::table& table) {
  ir::trace t;
  Model::graph().forward(t);
  for (const auto* s : {&table.decode, &table.prefill, &table.logits}) {
    std::vector<int> done(t.graph().ops.size());
    for (const auto part : {s->prologue, s->period, s->epilogue})
      for (const auto& d : part)
        for (std::size_t i = 0; i < d.op_count; ++i) ++done.at(d.ops[i]);
    for (std::size_t i = 0; i < done.size(); ++i) {
      CAPTURE(s->name, i);
      CHECK(done[i] == (s->has_head || t.graph().ops[i].where != ir::section::epilogue ? 1 : 0));
    }
  }
}

TEST_CASE("every op of the graph is done by exactly one dispatch", "[plan][engrave]") {
  each_op_once<fable>(story);
  each_op_once<models::bitnet_b158<older_config>>(older);
}
