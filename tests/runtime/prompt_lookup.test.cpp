// SPDX-License-Identifier: MIT
#include "intaglio/runtime/prompt_lookup.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

std::vector<std::int32_t> drafted(const std::vector<std::int32_t>& history, std::size_t longest, std::size_t shortest,
                                  std::size_t most) {
  std::vector<std::int32_t> out(most, -1);
  out.resize(runtime::prompt_lookup(history, longest, shortest, out).tokens);
  return out;
}

/// A session of its own for each generation, so that no measured time of an earlier one decides about drafts.
generation generate_alone(const checked_device& on, std::string_view prompt, const generate_options& options) {
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array tables{&fable_table(), &fable_portable_table()};
  basic_session session(on.device, tables, file, {.cache_folder = "", .prove_kernels = false});
  const auto ids = session.encode(prompt);
  const generation out = session.generate(ids, options);
  // The session goes on as if nothing had been drafted.
  CHECK(session.position() == ids.size() + out.ids.size());
  CHECK(session.generate({.max_tokens = 3}).ids.size() == 3);
  return out;
}

constexpr decoder_config windowed = [] {
  auto out = llama_tiny;
  out.sliding_window = 48;
  return out;
}();
/// A profile whose rings end at position 256.
constexpr plan::profile short_chunks = [] {
  auto out = plan::profiles::portable;
  out.name = "short chunks";
  out.prefill_tokens = 32;
  return out;
}();

/// Passes over drafts that are right, and over some that are not, against decode, after a prompt of a number of
/// tokens; random weights.
void check_passes(const plan::planned& planned, std::uint32_t prompt) {
  const plan::table& table = planned.table();
  const checked_device on;
  runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table),
                        runtime::usable_classes(on.device).front(), nullptr);
  run.prepare_verify(true, nullptr);
  const auto finish = [&] {
    while (run.pending() || run.in_flight() != 0) {
      if (run.may_submit()) run.submit(1e6, 16);
      else run.wait();
    }
  };
  std::vector<std::uint32_t> ids(prompt);
  for (std::uint32_t i = 0; i < prompt; ++i) ids[i] = (i * 7919 + i * i * 31) % table.config->vocab_size;
  const auto decoded = [&](std::uint32_t position, std::uint32_t token, std::uint32_t count,
                           const sampling_options& sampling) {
    run.begin(runtime::pass_kind::decode, position, std::span(&token, 1), sampling, count);
    finish();
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(run.drawn(i));
    return out;
  };
  // What is drawn overwrites a ring's oldest positions, which no window reaches any more: the prompt is fed once.
  for (std::uint32_t at = 0; at + 1 < prompt; at += 32) {
    run.begin(runtime::pass_kind::prefill, at, std::span(ids).subspan(at, std::min(32u, prompt - 1 - at)), {}, 1);
    finish();
  }
  for (const sampling_options& sampling :
       {sampling_options{}, sampling_options{.temperature = 0.9f, .top_k = 40, .repeat_penalty = 1.2f, .seed = 3}}) {
    const auto expected = decoded(prompt - 1, ids.back(), 20, sampling);
    for (const auto& [drafts, right] :
         {std::pair{7u, 7u}, std::pair{7u, 2u}, std::pair{15u, 15u}, std::pair{15u, 9u}}) {
      std::vector<std::uint32_t> tokens{ids.back()};
      for (std::uint32_t i = 0; i < drafts; ++i)
        tokens.push_back(i < right ? expected[i] : (expected[i] + 1) % table.config->vocab_size);
      run.begin(run.verify_kind(tokens.size()), prompt - 1, tokens, sampling, 1);
      finish();
      CHECK(run.accepted() == right + 1);
      for (std::uint32_t i = 0; i <= right; ++i) CHECK(run.drawn(i) == expected[i]);
      CHECK(decoded(prompt + right, expected[right], 19 - right, sampling) ==
            std::vector(expected.begin() + right + 1, expected.end()));
    }
  }
}

constexpr std::string_view repeating =
    "The fox saw a red ball. The dog saw a red ball. The fox saw a red ball. The dog saw a red ball. The fox saw a";

}  // namespace

TEST_CASE("prompt lookup: the longest match, the latest of equals, periodic text goes on") {
  CHECK(drafted({1, 2, 3, 9, 1, 2, 3}, 3, 2, 3) == std::vector{9, 1, 2});
  CHECK(drafted({7, 2, 3, 5, 1, 2, 3, 8, 7, 2, 3}, 3, 2, 2) ==
        std::vector{5, 1});                                                   // three tokens earlier beat two later
  CHECK(drafted({1, 2, 8, 4, 1, 2, 9, 4, 1, 2}, 2, 2, 1) == std::vector{9});  // the later of two
  CHECK(drafted({4, 5, 4, 5}, 3, 2, 5) == std::vector{4, 5, 4, 5, 4});        // past the end of the history
  CHECK(drafted({6, 6, 6}, 3, 2, 4) == std::vector{6, 6, 6, 6});
  CHECK(drafted({1, 2, 3, 4}, 3, 2, 4).empty());
  CHECK(drafted({3, 1, 3}, 3, 2, 4).empty());  // one token is too little
  CHECK(drafted({3, 1, 3}, 3, 1, 2) == std::vector{1, 3});
  CHECK(drafted({3}, 3, 1, 2).empty());
  CHECK(drafted({}, 3, 1, 2).empty());
}

TEST_CASE("prompt lookup: what matched before the drafts is counted, through their n-gram and beyond") {
  std::array<std::int32_t, 3> out{};
  const auto matched = [&](const std::vector<std::int32_t>& history) {
    return runtime::prompt_lookup(history, 3, 2, out).matched;
  };
  CHECK(matched({1, 2, 8, 1, 2}) == 2);
  CHECK(matched({9, 8, 7, 6, 5, 1, 8, 7, 6, 5}) == 4);
  CHECK(matched({4, 5, 4, 5, 4, 5}) == 4);
  CHECK(matched({1, 2, 3}) == 0);
  CHECK(matched(std::vector<std::int32_t>(200, 6)) == 64);
}

TEST_CASE("prompt lookup: text that is said again goes on after a replaced token") {
  std::array<std::int32_t, 3> out{};
  const std::vector<std::int32_t> said{1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 51, 52};
  runtime::lookup_trail trail;
  const auto find = [&](std::vector<std::int32_t> after) {
    std::vector<std::int32_t> history = said;
    history.insert(history.end(), after.begin(), after.end());
    const runtime::looked_up found = trail.find(history, 3, out);
    CHECK((found.tokens == 0 || found.tokens == out.size()));
    return found.tokens == 0 ? std::vector<std::int32_t>() : std::vector(out.begin(), out.end());
  };
  const std::vector<std::int32_t> none;
  CHECK(find({1}) == none);  // nothing was said again yet
  CHECK(find({1, 2, 3, 4}) == std::vector{5, 6, 7});
  CHECK(find({1, 2, 3, 4, 30}) == std::vector{6, 7, 8});         // instead of 5
  CHECK(find({1, 2, 3, 4, 30, 6}) == none);                      // one token that is the same is too little
  CHECK(find({1, 2, 3, 4, 30, 6, 7}) == std::vector{8, 9, 50});  // an n-gram
  CHECK(find({1, 2, 3, 4, 30, 6, 7, 31}) == none);               // too few after the one before
  CHECK(find({1, 2, 3, 4, 5, 6, 7, 8}) == std::vector{9, 50, 51});
  CHECK(find({1, 2, 3, 4, 5, 6, 7, 8, 30, 31}) == none);  // other text goes on
  CHECK(find({}) == none);
  CHECK(runtime::lookup_trail().find({}, 3, out).tokens == 0);
}

TEST_CASE("prompt lookup: drafts that fail cost no more than their share") {
  using budget_of = runtime::draft_budget;
  for (const double cost : {1.2, 2.0, 3.0, 5.0, 9.0})
    for (const std::size_t matched : {2u, 3u, 8u, 64u}) {
      budget_of budget;
      double spent = 0;
      std::uint32_t drawn = 0, longest_wait = 0, wait = 0;
      while (drawn < 5000) {
        const bool drafts = budget.allows(cost, 7, matched);
        wait = drafts ? 0 : wait + 1;
        longest_wait = std::max(longest_wait, wait);
        if (drafts) budget.verified(1, cost);
        else budget.decoded(1);
        spent += drafts ? cost : 1;
        drawn += 1;
      }
      INFO("cost " << cost << ", " << matched << " tokens matched");
      const double counted_on = cost < 8 ? std::min(7.0, static_cast<double>(matched) / 2) : 0;
      CHECK(spent <= (1 + budget_of::share) * drawn + budget_of::start + counted_on + cost);
      CHECK(spent > drawn);
      CHECK(longest_wait <= (cost + budget_of::most) / budget_of::share);
    }
  // Right ones are paid back at once, however long the wrong ones were.
  budget_of right;
  for (int i = 0; i < 100; ++i) right.verified(8, 3);
  CHECK(right.credit() == budget_of::most);
}

TEST_CASE("prompt lookup: a long match is tried where a short one must wait; the first is tried whatever it costs") {
  runtime::draft_budget budget;
  CHECK(budget.allows(20, 7, 2));
  budget.verified(1, 4);
  CHECK(budget.credit() == -1);
  CHECK_FALSE(budget.allows(4, 7, 2));
  CHECK_FALSE(budget.allows(4, 7, 7));
  CHECK(budget.allows(4, 7, 8));
  CHECK(budget.allows(2, 7, 4));
  CHECK_FALSE(budget.allows(8, 7, 64));  // nothing is saved even where all are right
}

TEST_CASE("prompt lookup: the text is the same with and without drafts") {
  checked_device on;
  for (const generate_options& plain :
       {generate_options{.max_tokens = 45},
        generate_options{
            .temperature = 0.8f, .top_k = 30, .top_p = 0.9f, .repeat_penalty = 1.15f, .seed = 5, .max_tokens = 45},
        generate_options{.max_tokens = 45, .stop = {"dog"}}}) {
    const generation expected = generate_alone(on, repeating, plain);
    for (const std::uint32_t drafts : {1u, 7u}) {
      generate_options options = plain;
      options.prompt_lookup_num_tokens = drafts;
      const generation found = generate_alone(on, repeating, options);
      INFO(drafts << " drafts at once: " << found.text);
      CHECK(found.ids == expected.ids);
      CHECK(found.text == expected.text);
      CHECK(found.finish == expected.finish);
      CHECK(found.timings.drafted_tokens > 0);
      CHECK(found.timings.accepted_tokens <= found.timings.drafted_tokens);
    }
  }
}

TEST_CASE(
    "prompt lookup: repeating text is drafted right; limits hold to the token; a loop of one's own draws the same") {
  checked_device on;
  const generation most = generate_alone(on, repeating, {.max_tokens = 40, .prompt_lookup_num_tokens = 7});
  CHECK(most.timings.accepted_tokens > 0);
  for (const std::uint32_t limit : {1u, 9u}) {
    const generation few = generate_alone(on, repeating, {.max_tokens = limit, .prompt_lookup_num_tokens = 7});
    CHECK(few.ids == std::vector(most.ids.begin(), most.ids.begin() + limit));
    CHECK(few.finish == finish_reason::length);
  }
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array tables{&fable_table(), &fable_portable_table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  for (const double budget_ms : {50.0, 1e-3}) {  // the second has each pass in many submissions
    session.reset();
    auto stream = session.complete(repeating, {.max_tokens = 40, .prompt_lookup_num_tokens = 7});
    while (stream.advance(budget_ms)) {}
    CHECK(stream.result().ids == most.ids);
  }
}

TEST_CASE("passes over drafts draw what decode does, across a ring's end too", "[once]") {
  check_passes(plan::planned::of<models::fable>(short_chunks, 512), 40);
  check_passes(plan::planned::of<models::llama<windowed, dtype::q4_0, dtype::f16, dtype::f32>>(short_chunks, 512), 252);
  check_passes(plan::planned::of<models::gemma3<gemma3_tiny, dtype::q4_k, dtype::f32>>(short_chunks, 512), 252);
}

TEST_CASE("prompt lookup: to the end of the context; options out of range are refused") {
  checked_device on;
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array tables{&fable_short_table(), &fable_portable_table()};
  std::vector<std::vector<std::int32_t>> drawn;
  for (const std::uint32_t drafts : {0u, 7u}) {
    basic_session session(on.device, tables, file, {.cache_folder = "", .prove_kernels = false});
    auto ids = session.encode(repeating);
    ids.resize(std::min<std::size_t>(ids.size(), 50));
    drawn.push_back(session.generate(ids, {.stop_at_end = false, .prompt_lookup_num_tokens = drafts}).ids);
    CHECK(session.position() == session.context());
    CHECK_THROWS_AS(session.begin(ids, {.prompt_lookup_num_tokens = session.table().verify.max_tokens}),
                    argument_error);
    CHECK_THROWS_AS(session.begin(ids, {.prompt_lookup_num_tokens = 2, .max_matching_ngram_size = 1}), argument_error);
  }
  CHECK(drawn[0] == drawn[1]);
}
