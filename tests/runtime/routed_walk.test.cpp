// SPDX-License-Identifier: MIT
// Walks by routers: all experts are the full walk, fewer are nearer the more there are, and what is counted adds up.
#include "intaglio/runtime/routed_walk.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/io/feature_router_build.hpp"
#include "intaglio/io/vindex.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/planned.hpp"
#include "io/vocabularies.hpp"
#include "mixtral_model.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

TEST_CASE("predict_with_router: all experts are the full walk, bit for bit; its statistics add up",
          "[runtime][walk][router]") {
  const bool ternary = GENERATE(false, true);
  const auto path =
      ternary ? shared("models/fable-bitnet-i2_s.gguf") : shared("models/stories260k/stories260K-f32.gguf");
  const auto planned = plan::planned::of<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32>>(
      plan::profiles::cpu, 64);
  const plan::table& table = ternary ? fable_table() : planned.table();
  const io::checkpoint file = io::checkpoint::open(path);
  const temporary_folder folder;
  io::build_feature_index(path, folder / "index");
  const io::feature_index index = io::feature_index::open(folder / "index");
  constexpr std::uint32_t experts = 8, layers_of_stories = 5;
  const io::feature_router router = io::build_router(index, {.experts = experts});
  runtime::walked_model model(table, file, index);
  const std::vector<std::uint32_t> prompt{1, 300, 17};

  const reference::walk_choice full{.active_only = ternary};
  std::vector<float> dense;
  std::vector<std::uint32_t> ids = prompt;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto logits = model.feed(ids[i], &full);
    dense.assign(logits.begin(), logits.end());
    if (i + 1 == ids.size() && ids.size() < 5)
      ids.push_back(static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  const auto all = runtime::predict_with_router(model, router, prompt, 2, experts, ternary);
  CHECK(all.ids == ids);
  CHECK((all.logits == dense));
  CHECK(all.statistics.tokens == 5);
  CHECK(all.statistics.walked() == 1);

  // After the same tokens, more experts come nearer to the full walk.
  double before = HUGE_VAL;
  for (const std::size_t top_k : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
    const auto some = runtime::predict_with_router(model, router, ids, 0, top_k, ternary);
    runtime::walk_error error;
    error.add(some.logits, dense);
    CHECK(error.relative() < before);
    before = error.relative() + 1e-9;
    REQUIRE(some.statistics.layers.size() == (ternary ? table.config->num_hidden_layers : layers_of_stories));
    for (std::uint32_t layer = 0; layer < some.statistics.layers.size(); ++layer) {
      const auto& of = some.statistics.layers[layer];
      std::vector<std::uint64_t> sizes(experts);
      for (const std::uint32_t expert : router.layer(layer).expert_of) ++sizes[expert];
      std::uint64_t chosen = 0, features = 0;
      double shares = 0;
      for (std::size_t e = 0; e < experts; ++e)
        chosen += of.chosen[e], features += of.chosen[e] * sizes[e], shares += of.shares[e];
      CHECK(chosen == top_k * some.statistics.tokens);
      CHECK(features == of.features);
      CHECK(std::abs(shares - static_cast<double>(some.statistics.tokens)) < 1e-4);
      CHECK(of.all_features == some.statistics.tokens * table.config->intermediate_size);
    }
    if (top_k != 8) CHECK(some.statistics.walked() < 0.9);
  }
  CHECK(before < 1e-6);
  CHECK_THROWS_AS(runtime::predict_with_router(model, router, prompt, 1, 0), argument_error);
  CHECK_THROWS_AS(runtime::predict_with_router(model, router, {}, 1, 2), argument_error);
}

TEST_CASE("walk_choice::route: the features of others are not looked at, and what is no list of features is refused",
          "[runtime][walk][router]") {
  const auto planned = plan::planned::of<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32>>(
      plan::profiles::cpu, 64);
  const auto path = shared("models/stories260k/stories260K-f32.gguf");
  const io::checkpoint file = io::checkpoint::open(path);
  const temporary_folder folder;
  io::build_feature_index(path, folder / "index");
  const io::feature_index index = io::feature_index::open(folder / "index");
  runtime::walked_model model(planned.table(), file, index);
  reference::walk_choice choice{.count = 3};
  std::vector<std::uint32_t> routed{4, 9, 10, 50, 171};
  choice.route = [&](std::uint32_t, std::span<const float>, std::size_t) { return routed; };
  std::size_t layers = 0;
  model.feed(1, &choice, [&](const reference::walked_ffn& of) {
    ++layers;
    CHECK(of.chosen.size() == 3);
    for (const std::uint32_t f : of.chosen) CHECK(std::ranges::find(routed, f) != routed.end());
    for (std::uint32_t f = 0; f < of.scores.size(); ++f)
      CHECK((of.scores[f] == 0 || std::ranges::find(routed, f) != routed.end()));
  });
  CHECK(layers == 5);
  for (const auto& wrong : {std::vector<std::uint32_t>{5, 4}, {4, 4}, {4, 172}}) {
    routed = wrong;
    CHECK_THROWS_AS(model.feed(1, &choice), argument_error);
  }
}

TEST_CASE(
    "a mixture's index is walked by the experts that its own router chooses: the model in double precision, fewer "
    "experts, and who was chosen",
    "[runtime][walk][router]") {
  using testing::mixtral_tiny;
  const testing::mixtral_model exact(mixtral_tiny, 11);
  const temporary_folder folder;
  auto words = small_sentencepiece();
  for (std::size_t i = words.tokens.size(); i < mixtral_tiny.vocab_size; ++i)
    words.tokens.push_back("piece" + std::to_string(i)), words.token_types.push_back(1), words.scores.push_back(-100);
  const auto path = folder / "tiny.gguf";
  exact.write_gguf(path, words);
  const auto planned =
      plan::planned::of<models::mixtral<mixtral_tiny, dtype::f32, dtype::f32, dtype::f32>>(plan::profiles::cpu, 64);
  const io::checkpoint file = io::checkpoint::open(path);
  // So little memory for down that it is turned in many passes.
  io::build_feature_index(path, folder / "index", {.turn_bytes = 4096});
  io::expect_index_of(io::feature_index::open(folder / "index"), path);
  const io::feature_index index = io::feature_index::open(folder / "index");
  REQUIRE(index.layer(0).features == 6 * 96);
  CHECK(index.config().num_experts_per_tok == 2);
  runtime::walked_model model(planned.table(), file, index);

  const std::vector<std::uint32_t> prompt{1, 53, 106, 159, 212, 265, 30};
  const std::vector<std::int32_t> signed_prompt(prompt.begin(), prompt.end());
  const auto wanted = exact.logits(signed_prompt);
  const auto chosen = exact.chosen();
  const auto apart = [&](std::span<const float> found, const std::vector<double>& from) {
    double out = 0;
    for (std::size_t i = 0; i < from.size(); ++i)
      out = std::max(out, std::abs(static_cast<double>(found[i]) - from[i]));
    return out;
  };
  // Without a router of a file: what the plan's own `route` chose.
  const reference::walk_choice full;
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < prompt.size(); ++i)
    CHECK(
        apart(model.feed(prompt[i], &full, [&](const reference::walked_ffn& seen) { looked_at += seen.chosen.size(); }),
              wanted[i]) < 5e-5);
  CHECK(looked_at == prompt.size() * 2 * 2 * 96);

  io::mixture_router(index, file).write(folder / "router.bin");
  const auto router = io::feature_router::open(folder / "router.bin", index);
  const auto two = runtime::predict_with_router(model, router, prompt, 0, 2);
  CHECK(apart(two.logits, wanted.back()) < 5e-5);
  REQUIRE(two.statistics.layers.size() == 2);
  std::map<std::size_t, std::size_t> counted;
  for (const auto& layer : two.statistics.layers) {
    std::uint64_t tokens = 0;
    double shares = 0;
    for (std::size_t e = 0; e < layer.chosen.size(); ++e) {
      if (layer.chosen[e] != 0) counted[e] += layer.chosen[e];
      tokens += layer.chosen[e];
      shares += layer.shares[e];
    }
    CHECK(tokens == 2 * prompt.size());
    CHECK(std::abs(shares - static_cast<double>(prompt.size())) < 1e-5);
    CHECK(layer.features == prompt.size() * 2 * 96);
    CHECK(layer.all_features == prompt.size() * 6 * 96);
  }
  CHECK(counted == chosen);
  // One expert less, and all of them, are other models.
  const auto one = runtime::predict_with_router(model, router, prompt, 0, 1),
             all = runtime::predict_with_router(model, router, prompt, 0, 6);
  CHECK(one.statistics.walked() == 1. / 6);
  CHECK(all.statistics.walked() == 1);
  CHECK(apart(one.logits, wanted.back()) > 1e-3);
  CHECK(apart(all.logits, wanted.back()) > 1e-3);

  // Other partitions know nothing of the experts' shares; the other commands that would not keep them refuse too.
  CHECK_THROWS_AS(io::build_router(index, {.experts = 3}), argument_error);
  std::vector<io::router_layer> halves(2);
  for (auto& of : halves) {
    for (std::uint32_t f = 0; f < 6 * 96; ++f) of.expert_of.push_back(f / (3 * 96));
    of.bias.assign(2, 0.f);
    of.weights.assign(std::size_t{2} * mixtral_tiny.hidden_size, 0.1f);
  }
  CHECK_THROWS_AS(runtime::predict_with_router(model, io::feature_router(index, halves), prompt, 0, 1), argument_error);
  io::feature_patch patch(index, folder / "patch.journal", true);
  CHECK_THROWS_AS(patch.apply({io::feature_edit::remove, 0, 3, {}}), argument_error);
  CHECK_THROWS_AS(io::export_vindex(index, folder / "larql"), file_error);
}
