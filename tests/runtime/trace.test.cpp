// SPDX-License-Identifier: MIT
// The trace that decode writes of the features of its FFNs: which tokens of the ring count, and what they say against
// the reference's walk; nothing else changes.
#include "intaglio/runtime/trace.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <map>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/graph/layers/walk_ffn.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/walked_model.hpp"
#include "intaglio/runtime/weights.hpp"
#include "loaded_machine.hpp"
#include "runtime/drawn_tokens.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

constexpr std::uint32_t top = 24;

template <template <dtype, dtype> class FFN>
plan::planned stories(const plan::profile& target) {
  return plan::planned::of<models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32, FFN>>(target,
                                                                                                               64);
}
template <template <dtype, dtype> class FFN>
plan::planned gemma(const plan::profile& target) {
  return plan::planned::of<models::gemma3<gemma3_tiny, dtype::f16, dtype::f16, FFN>>(target, 64);
}

/// A model planned with and without a trace, and the dense plan that the reference walks.
struct traced_plans {
  plan::planned plain, traced, dense;
  std::filesystem::path file;
  reference::walk_choice choice;
};
std::filesystem::path stories_file() { return shared("models/stories260k/stories260K-f32.gguf"); }
traced_plans made(int which) {
  const plan::profile& cpu = plan::profiles::cpu;
  if (which == 0)
    return {stories<graph::gated_ffn>(cpu),
            stories<graph::traced<top>::ffn>(cpu),
            stories<graph::gated_ffn>(cpu),
            stories_file(),
            {}};
  if (which == 1)
    return {stories<graph::sparse_walk<40>::ffn>(cpu),
            stories<graph::traced_walk<top, 40>::ffn>(cpu),
            stories<graph::gated_ffn>(cpu),
            stories_file(),
            {.count = 40}};
  if (which == 2)
    return {gemma<graph::walk_ffn>(cpu),
            gemma<graph::traced_walk<top>::ffn>(cpu),
            gemma<graph::gated_ffn>(cpu),
            conformance("gemma3-tiny") / "gguf/gemma3-tiny-f16.gguf",
            {}};
  const auto fable = []<template <dtype, dtype> class FFN>() {
    return plan::planned::of<models::bitnet_b158<models::fable_config, dtype::i2_s, dtype::i8, dtype::f16, FFN>>(
        plan::profiles::cpu, 64);
  };
  return {fable.operator()<graph::walk_ffn>(),
          fable.operator()<graph::traced<top>::ffn>(),
          fable.operator()<graph::gated_ffn>(),
          shared("models/fable-bitnet-i2_s.gguf"),
          {.active_only = true}};
}

/// Drawn at a high temperature, where nearly every bit of the logits counts.
std::vector<std::uint32_t> drawn(runtime::executor& run, std::uint32_t count) {
  return drawn_tokens(run, 0, 300, {.temperature = 3.f, .seed = 5}, count);
}

/// The decode sequence on the CPU, token by token.
struct decoded {
  std::vector<float> logits;
  trace_result trace;
};
decoded decode(const plan::table& table, const io::checkpoint& file, std::span<const std::uint32_t> ids) {
  file_weights weights(table, file);
  loaded_machine machine(weights);
  decoded out;
  runtime::trace_ring ring(table.trace);
  for (std::uint32_t at = 0; at < ids.size(); ++at) {
    machine.feed(at, ids.subspan(at, 1));
    if (table.trace.top != 0) ring.submitted(at);
    machine.run(table.decode);
    ring.completed(1);
    const auto logits = machine.floats(table.decode.logits_offset, table.config->vocab_size);
    out.logits.insert(out.logits.end(), logits.begin(), logits.end());
  }
  if (table.trace.top != 0) out.trace = ring.take(table.context, machine.trace);
  return out;
}

/// What the walk of the reference says: by layer every feature's score and contribution.
struct walked_layer_trace {
  std::vector<float> scores;
  std::map<std::uint32_t, float> contributions;  ///< with the value's sign
};
std::vector<std::vector<walked_layer_trace>> walked(runtime::walked_model& model, std::span<const std::uint32_t> ids,
                                                    const reference::walk_choice& choice) {
  std::vector<std::vector<walked_layer_trace>> out;
  for (const std::uint32_t id : ids) {
    auto& token = out.emplace_back();
    model.feed(id, &choice, [&](const reference::walked_ffn& of) {
      walked_layer_trace& layer = token.emplace_back();
      layer.scores.assign(of.scores.begin(), of.scores.end());
      for (std::size_t i = 0; i < of.chosen.size(); ++i) {
        double square = 0;
        for (const float value : reference::walked_layer::row(of.vectors.down, of.chosen[i], of.vectors.hidden_size))
          square += static_cast<double>(value) * static_cast<double>(value);
        layer.contributions[of.chosen[i]] = of.values[i] * static_cast<float>(std::sqrt(square));
      }
    });
  }
  return out;
}
void check_against(const trace_result& found, std::span<const std::uint32_t> ids,
                   const std::vector<std::vector<walked_layer_trace>>& expected) {
  REQUIRE(found.tokens.size() == ids.size());
  CHECK(found.lost == 0);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const traced_token& token = found.tokens[t];
    CHECK(token.position == t);
    CHECK(token.token == static_cast<std::int32_t>(ids[t]));
    REQUIRE(token.layers.size() == expected[t].size());
    for (std::size_t l = 0; l < token.layers.size(); ++l) {
      INFO("token " << t << ", layer " << l);
      const walked_layer_trace& walk = expected[t][l];
      std::vector<float> sizes;
      double square = 0;
      for (const auto& [feature, size] : walk.contributions)
        sizes.push_back(std::fabs(size)), square += static_cast<double>(size) * static_cast<double>(size);
      std::ranges::sort(sizes, std::greater{});
      const float close = 1e-3f * sizes.front();
      CHECK(std::fabs(token.sizes[l] - static_cast<float>(std::sqrt(square))) <= 1e-3f * token.sizes[l]);
      const auto on = static_cast<std::size_t>(std::ranges::count_if(sizes, [](float size) { return size != 0; }));
      REQUIRE(token.layers[l].size() == std::min<std::size_t>(top, on));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < token.layers[l].size(); ++i) {
        const fired_feature& each = token.layers[l][i];
        const auto at = walk.contributions.find(each.feature);
        wrong += at == walk.contributions.end() || std::fabs(at->second - each.sign * each.contribution) > close ||
                 std::fabs(sizes[i] - each.contribution) > close ||
                 std::fabs(walk.scores[each.feature] - each.score) > 1e-3f * std::max(1.f, std::fabs(each.score));
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("trace_ring: each token once, those that nobody took counted, those that ran ahead forgotten",
          "[runtime][trace]") {
  const plan::trace_shape shape{.top = 2, .slot_count = 4, .layers = 1};
  runtime::trace_ring ring(shape);
  std::vector<std::uint32_t> words(shape.bytes() / 4);
  const auto write = [&](std::uint32_t position, std::uint32_t token) {
    const auto at = words.begin() + position % 4 * 9;
    const std::uint32_t small = std::bit_cast<std::uint32_t>(1.f), large = std::bit_cast<std::uint32_t>(-2.f);
    std::ranges::copy(std::vector<std::uint32_t>{position, token, large, 5, small, small, 6, small, large}, at);
  };
  const auto taken = [&](std::uint32_t size) {
    const trace_result found = ring.take(size, words);
    std::vector<std::uint32_t> positions;
    for (const auto& each : found.tokens) positions.push_back(each.position);
    return std::pair(positions, found.lost);
  };
  using list = std::vector<std::uint32_t>;
  for (std::uint32_t p = 0; p < 3; ++p) ring.submitted(p), write(p, 70 + p);
  CHECK(taken(9) == std::pair(list{}, std::uint64_t{0}));
  ring.completed(2);
  const trace_result first = ring.take(9, words);
  REQUIRE(first.tokens.size() == 2);
  CHECK(first.tokens[1].token == 71);
  CHECK(first.tokens[1].layers[0] == std::vector<fired_feature>{{6, 1.f, 2.f, -1.f}, {5, 1.f, 1.f, 1.f}});
  CHECK(taken(9) == std::pair(list{}, std::uint64_t{0}));
  for (std::uint32_t p = 3; p < 7; ++p) ring.submitted(p), write(p, 70 + p);  // 6 replaces 2, which is still on its way
  ring.completed(5);
  CHECK(taken(6) == std::pair(list{3, 4, 5}, std::uint64_t{1}));
  ring.forget(6);
  CHECK(taken(9) == std::pair(list{}, std::uint64_t{0}));
  ring.submitted(6), ring.submitted(7);
  ring.forget(7);  // on its way when the generation ended
  ring.completed(2);
  ring.submitted(7), write(7, 1), ring.completed(1);
  CHECK(taken(9) == std::pair(list{6, 7}, std::uint64_t{0}));
  ring.submitted(8), ring.completed(1);
  ring.overwritten(0);
  CHECK(taken(9) == std::pair(list{}, std::uint64_t{1}));
}

TEST_CASE("trace: a plan with one has the same logits, bit for bit, and tells what the reference's walk sees",
          "[runtime][trace]") {
  const traced_plans of = made(GENERATE(0, 1, 2, 3));
  INFO(of.file);
  const io::checkpoint file = io::checkpoint::open(of.file);
  const std::vector<std::uint32_t> ids{1, 300, 17};
  const decoded traced = decode(of.traced.table(), file, ids), plain = decode(of.plain.table(), file, ids);
  CHECK((traced.logits == plain.logits));
  const temporary_folder folder;
  io::build_feature_index(of.file, folder.path());
  const io::feature_index index = io::feature_index::open(folder.path());
  runtime::walked_model model(of.dense.table(), file, index);
  check_against(traced.trace, ids, walked(model, ids, of.choice));
}

TEST_CASE("trace: a device draws the same tokens and tells what the reference's walk sees",
          "[runtime][trace][gpu][once]") {
  const checked_device on;
  const traced_plans of = made(GENERATE(1, 2, 3));
  INFO(of.file);
  const io::checkpoint file = io::checkpoint::open(of.file);
  constexpr std::uint32_t count = 10;
  runtime::executor run(on.device, of.traced.table(), runtime::load_weights(on.device, of.traced.table(), file),
                        chain_class(on.device), nullptr);
  CHECK(run.prove().kernel.empty());
  const auto tokens = drawn(run, count);
  runtime::executor plain(on.device, of.plain.table(), runtime::load_weights(on.device, of.plain.table(), file),
                          chain_class(on.device), nullptr);
  CHECK(drawn(plain, count) == tokens);
  CHECK_THROWS_AS(plain.take_trace(count), argument_error);
  std::vector<std::uint32_t> ids{300};
  ids.insert(ids.end(), tokens.begin(), tokens.end() - 1);
  const temporary_folder folder;
  io::build_feature_index(of.file, folder.path());
  const io::feature_index index = io::feature_index::open(folder.path());
  runtime::walked_model model(of.dense.table(), file, index);
  check_against(run.take_trace(count), ids, walked(model, ids, of.choice));
  CHECK(run.take_trace(count).tokens.empty());
}

TEST_CASE("trace: a session gives prompt and generation once, and counts what nobody took",
          "[runtime][trace][gpu][once]") {
  const checked_device on;
  const plan::planned planned = stories<graph::traced<2>::ffn>([] {
    plan::profile out = plan::profiles::cpu;
    out.ring_size = 8;
    return out;
  }());
  const plan::table* const tables[] = {&planned.table()};
  basic_session chat(on.device, tables, io::checkpoint::open(stories_file()), {});
  const std::vector<std::int32_t> prompt{1, 300, 17, 42};
  chat.prefill(prompt, 1);
  CHECK(chat.take_trace().tokens.size() == 3);  // the last one waits
  {
    text_stream stream = chat.begin({.max_tokens = 3});
    std::size_t seen = 0;
    while (stream.next()) {
      if (stream.done()) break;
      for (const auto& each : stream.take_trace().tokens) CHECK(each.position == 3 + seen++);
    }
    CHECK_THROWS_AS(stream.take_trace(), argument_error);
    const trace_result rest = chat.take_trace();
    CHECK(rest.lost == 0);
    for (const auto& each : rest.tokens) {
      CHECK(each.position == 3 + seen++);
      CHECK(each.token == chat.history()[each.position]);
    }
    CHECK(seen == 3);
  }
  chat.generate({.max_tokens = 20});
  const trace_result late = chat.take_trace();
  CHECK(late.tokens.size() == 8);
  CHECK(late.lost == 12);
  CHECK(late.tokens.back().position == 25);
  chat.reset();
  chat.prefill(prompt);
  chat.generate({.max_tokens = 1});
  CHECK(chat.take_trace().tokens.size() == 1);  // a prompt in chunks is not traced
}

TEST_CASE("trace: norms of down vectors are those of the vectors, as changed", "[runtime][trace]") {
  const bool ternary = GENERATE(true, false);
  const traced_plans of = made(ternary ? 3 : 0);
  const plan::table& table = of.traced.table();
  const io::checkpoint file = io::checkpoint::open(of.file);
  const temporary_folder folder;
  io::build_feature_index(of.file, folder / "index");
  const io::feature_index index = io::feature_index::open(folder / "index");
  io::feature_patch patch(index, folder / "patch", true);
  io::feature_change change{io::feature_edit::update, 2, 9, {}};
  for (auto& vector : change.vectors)
    vector.assign(table.config->hidden_size, ternary ? index.layer(2)[io::feature_vector::down].scale : .5f);
  if (ternary)
    for (const io::feature_vector which : io::feature_vectors)
      change.vectors[static_cast<std::size_t>(which)].assign(table.config->hidden_size, index.layer(2)[which].scale);
  patch.apply(change);
  runtime::weight_image image(file, table), changed(file, table, &patch);
  for (runtime::weight_image* each : {&image, &changed}) each->measure(1, [](std::uint64_t) {});
  const std::size_t features = table.config->intermediate_size, width = table.config->hidden_size;
  std::uint32_t slot = 0;
  while (table.weights[slot].layout != plan::weight_layout::column_norms) ++slot;
  REQUIRE(table.weights[slot].bytes == 4 * features * table.config->num_hidden_layers);
  std::vector<float> norms(table.config->num_hidden_layers * features), after = norms, part(7), down(features * width);
  image.fill(slot, 0, 0, std::as_writable_bytes(std::span(norms)));
  changed.fill(slot, 0, 0, std::as_writable_bytes(std::span(after)));
  image.fill(slot, 0, 4 * (2 * features - 3), std::as_writable_bytes(std::span(part)));
  CHECK(std::ranges::equal(part, std::span(norms).subspan(2 * features - 3, 7)));
  for (std::uint32_t layer = 0; layer < table.config->num_hidden_layers; ++layer) {
    index.read_f32(layer, io::feature_vector::down, 0, features, down);
    double worst = 0;
    for (std::size_t f = 0; f < features; ++f) {
      double square = 0;
      for (std::size_t i = 0; i < width; ++i)
        square += static_cast<double>(down[f * width + i]) * static_cast<double>(down[f * width + i]);
      worst = std::max(worst, std::fabs(static_cast<double>(norms[layer * features + f]) - std::sqrt(square)));
    }
    CHECK(worst <= 1e-5);
  }
  const float expected = change.vectors[2][0] * std::sqrt(static_cast<float>(width));
  CHECK(std::fabs(after[2 * features + 9] - expected) <= 1e-4f * expected);
  after[2 * features + 9] = norms[2 * features + 9];
  CHECK((after == norms));
}
