// SPDX-License-Identifier: MIT
// Walks by routers: all experts are the full walk, fewer are nearer the more there are, and what is counted adds up.
#include "intaglio/runtime/routed_walk.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/io/feature_router_build.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

TEST_CASE("predict_with_router: all experts are the full walk, bit for bit; its statistics add up", "[runtime][walk][router]") {
  const bool ternary = GENERATE(false, true);
  const auto path = ternary ? shared("models/fable-bitnet-i2_s.gguf") : shared("models/stories260k/stories260K-f32.gguf");
  const auto planned = plan::planned::of<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32>>(plan::profiles::cpu, 64);
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
    if (i + 1 == ids.size() && ids.size() < 5) ids.push_back(static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  const auto all = runtime::predict_with_router(model, router, prompt, 2, experts, ternary);
  CHECK(all.ids == ids);
  CHECK((all.logits == dense));
  CHECK(all.statistics.tokens == 5);
  CHECK(all.statistics.walked() == 1);

  // Behind the same tokens: the more experts, the nearer.
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
      for (std::size_t e = 0; e < experts; ++e) chosen += of.chosen[e], features += of.chosen[e] * sizes[e], shares += of.shares[e];
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

TEST_CASE("walk_choice::route: the features of others are not looked at, and what is no list of features is refused", "[runtime][walk][router]") {
  const auto planned = plan::planned::of<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32>>(plan::profiles::cpu, 64);
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
    for (std::uint32_t f = 0; f < of.scores.size(); ++f) CHECK((of.scores[f] == 0 || std::ranges::find(routed, f) != routed.end()));
  });
  CHECK(layers == 5);
  for (const auto& wrong : {std::vector<std::uint32_t>{5, 4}, {4, 4}, {4, 172}}) {
    routed = wrong;
    CHECK_THROWS_AS(model.feed(1, &choice), argument_error);
  }
}
