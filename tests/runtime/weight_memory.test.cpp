// SPDX-License-Identifier: MIT
#include "intaglio/runtime/weight_memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/tables.hpp"
#include "runtime/weight_bytes.hpp"
#include "shared.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace intaglio;

namespace {

constexpr std::uint64_t ffn_of_fable = 3 * 256 * 1024 / 4;  ///< of a layer, two bits a weight
std::uint64_t rest_of_fable() { return fable_table().weight_bytes() - 8 * ffn_of_fable; }

std::uint32_t layers_in(const std::vector<runtime::weight_part>& parts, std::uint32_t slot) {
  for (const auto& each : parts)
    if (each.slot == slot) return each.end - each.first;
  return 0;
}

}  // namespace

TEST_CASE("a budget takes all weights but FFNs and as many layers' FFNs as fit, the first ones",
          "[runtime][weight_memory]") {
  const plan::table& table = fable_table();
  struct expected {
    std::uint64_t budget;
    std::uint32_t layers;
  };
  for (const expected& each :
       {expected{rest_of_fable(), 0}, expected{rest_of_fable() + ffn_of_fable - 1, 0},
        expected{rest_of_fable() + ffn_of_fable, 1}, expected{rest_of_fable() + 5 * ffn_of_fable + 7, 5},
        expected{table.weight_bytes(), 8}, expected{~std::uint64_t{0}, 8}}) {
    INFO("budget " << each.budget);
    const auto split = runtime::split_weights(table, each.budget);
    CHECK(split.device_bytes == rest_of_fable() + each.layers * ffn_of_fable);
    CHECK(split.host_bytes == (8 - each.layers) * ffn_of_fable);
    CHECK(split.device_bytes <= each.budget);
    for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot) {
      const plan::weight& w = table.weights[slot];
      const std::uint32_t all = w.per_layer ? 8u : 1u;
      CHECK(layers_in(split.device, slot) == (runtime::is_of_features(w) ? each.layers : all));
      CHECK(layers_in(split.device, slot) + layers_in(split.host, slot) == all);
    }
    for (const auto& part : split.host) CHECK((part.first == each.layers && part.end == 8));
  }
  CHECK(runtime::split_weights(table).host.empty());
  CHECK_THROWS_MATCHES(runtime::split_weights(table, rest_of_fable() - 1), argument_error,
                       MessageMatches(ContainsSubstring("all but the FFNs")));
}

TEST_CASE("weights of a budget are those of none, each in a buffer of its memory", "[runtime][weight_memory]") {
  const checked_device on;
  const plan::table& table = fable_table();
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const auto whole = runtime::load_weights(on.device, table, from);
  const auto expected = weight_bytes(on.device, whole);
  CHECK(whole.host_bytes == 0);
  for (const std::uint64_t largest : {std::uint64_t{0}, std::uint64_t{300'000}}) {
    runtime::load_progress last;
    const auto split = runtime::load_weights(on.device, table, from,
                                             {.progress = [&](const auto& at) { last = at; },
                                              .largest_piece = largest,
                                              .budget = rest_of_fable() + 3 * ffn_of_fable});
    CHECK(split.host_bytes == 5 * ffn_of_fable);
    CHECK((last.bytes_done == last.bytes_total && last.tensors_done == last.tensors_total));
    CHECK(weight_bytes(on.device, split) == expected);
    std::set<std::uint32_t> device, host;
    for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot)
      for (std::uint32_t layer = 0; layer < (table.weights[slot].per_layer ? 8u : 1u); ++layer)
        (runtime::is_of_features(table.weights[slot]) && layer >= 3 ? host : device)
            .insert(split.placed.items[split.first[slot] + layer].buffer);
    for (const std::uint32_t each : host) CHECK(!device.contains(each));
    CHECK(!host.empty());
  }
  const auto made = runtime::synthetic_weights(on.device, table),
             made_split = runtime::synthetic_weights(on.device, table, {.budget = rest_of_fable()});
  CHECK(made_split.host_bytes == 8 * ffn_of_fable);
  CHECK(weight_bytes(on.device, made) == weight_bytes(on.device, made_split));
}

TEST_CASE("a session with a budget tells the same story", "[runtime][weight_memory]") {
  const checked_device on;
  const plan::table* const tables[] = {&fable_table()};
  const auto from = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const auto text_with = [&](std::optional<std::uint64_t> budget) {
    session_options options;
    options.weight_budget = budget;
    basic_session session(on.device, tables, from, options);
    generate_options wanted;
    wanted.max_tokens = 12;
    return session.generate(session.encode("Once upon a time"), wanted).text;
  };
  const std::string story = text_with({});
  CHECK(!story.empty());
  CHECK(text_with(rest_of_fable() + 2 * ffn_of_fable) == story);
  CHECK_THROWS_AS(text_with(1000), argument_error);
}
