// SPDX-License-Identifier: MIT
#include "intaglio/runtime/prompt_lookup.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"

using namespace intaglio;

namespace {

std::vector<std::int32_t> drafted(const std::vector<std::int32_t>& history, std::size_t longest, std::size_t shortest, std::size_t most) {
  std::vector<std::int32_t> out(most, -1);
  out.resize(runtime::prompt_lookup(history, longest, shortest, out));
  return out;
}

/// A session of its own for each generation, so that no measured time of an earlier one decides about drafts.
generation told(const checked_device& on, std::string_view prompt, const generate_options& options) {
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

constexpr std::string_view repeating = "The fox saw a red ball. The dog saw a red ball. The fox saw a red ball. The dog saw a red ball. The fox saw a";

}  // namespace

TEST_CASE("prompt lookup: the longest match, the latest of equals, periodic text goes on") {
  CHECK(drafted({1, 2, 3, 9, 1, 2, 3}, 3, 2, 3) == std::vector{9, 1, 2});
  CHECK(drafted({7, 2, 3, 5, 1, 2, 3, 8, 7, 2, 3}, 3, 2, 2) == std::vector{5, 1});   // three tokens earlier beat two later
  CHECK(drafted({1, 2, 8, 4, 1, 2, 9, 4, 1, 2}, 2, 2, 1) == std::vector{9});          // the later of two
  CHECK(drafted({4, 5, 4, 5}, 3, 2, 5) == std::vector{4, 5, 4, 5, 4});                // past the end of the history
  CHECK(drafted({6, 6, 6}, 3, 2, 4) == std::vector{6, 6, 6, 6});
  CHECK(drafted({1, 2, 3, 4}, 3, 2, 4).empty());
  CHECK(drafted({3, 1, 3}, 3, 2, 4).empty());                                         // one token is too little
  CHECK(drafted({3, 1, 3}, 3, 1, 2) == std::vector{1, 3});
  CHECK(drafted({3}, 3, 1, 2).empty());
  CHECK(drafted({}, 3, 1, 2).empty());
}

TEST_CASE("prompt lookup: drafts that fail cost no more than their share") {
  for (const double cost : {1.2, 2.0, 3.0, 5.0, 9.0}) {
    runtime::draft_budget budget;
    double spent = 0;
    std::uint32_t drawn = 0;
    while (drawn < 5000) {
      if (budget.allows(cost)) {
        budget.verified(1, cost);
        spent += cost;
        drawn += 1;
      } else {
        const std::uint32_t wait = budget.tokens_until(cost, 100);
        CHECK(wait != 0);
        CHECK((wait == 100) == (std::min(cost - 1, runtime::draft_budget::most) - budget.credit() > 99 * runtime::draft_budget::share));
        budget.decoded(wait);
        CHECK((wait == 100 || budget.allows(cost)));
        spent += wait;
        drawn += wait;
      }
    }
    INFO("cost " << cost);
    CHECK(spent <= (1 + runtime::draft_budget::share) * drawn + runtime::draft_budget::start + std::max(0.0, cost - 1 - runtime::draft_budget::most));
    CHECK(spent > drawn);
  }
  runtime::draft_budget right;
  for (int i = 0; i < 100; ++i) right.verified(8, 3);
  CHECK(right.credit() == runtime::draft_budget::most);
}

TEST_CASE("prompt lookup: the text is the same with and without drafts", "[host]") {
  checked_device on;
  for (const generate_options& plain : {generate_options{.max_tokens = 45},
                                        generate_options{.temperature = 0.8f, .top_k = 30, .top_p = 0.9f, .repeat_penalty = 1.15f, .seed = 5, .max_tokens = 45},
                                        generate_options{.max_tokens = 45, .stop = {"dog"}}}) {
    const generation expected = told(on, repeating, plain);
    for (const std::uint32_t drafts : {1u, 7u}) {
      generate_options options = plain;
      options.prompt_lookup_num_tokens = drafts;
      const generation found = told(on, repeating, options);
      INFO(drafts << " drafts at once: " << found.text);
      CHECK(found.ids == expected.ids);
      CHECK(found.text == expected.text);
      CHECK(found.finish == expected.finish);
      CHECK(found.timings.drafted_tokens > 0);
      CHECK(found.timings.accepted_tokens <= found.timings.drafted_tokens);
    }
  }
}

TEST_CASE("prompt lookup: repeating text is drafted right; limits hold to the token; a loop of one's own draws the same", "[host]") {
  checked_device on;
  const generation most = told(on, repeating, {.max_tokens = 40, .prompt_lookup_num_tokens = 7});
  CHECK(most.timings.accepted_tokens > 0);
  for (const std::uint32_t limit : {1u, 9u}) {
    const generation few = told(on, repeating, {.max_tokens = limit, .prompt_lookup_num_tokens = 7});
    CHECK(few.ids == std::vector(most.ids.begin(), most.ids.begin() + limit));
    CHECK(few.finish == finish_reason::length);
  }
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array tables{&fable_table(), &fable_portable_table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  auto stream = session.complete(repeating, {.max_tokens = 40, .prompt_lookup_num_tokens = 7});
  while (stream.advance(50)) {}
  CHECK(stream.result().ids == most.ids);
}

TEST_CASE("prompt lookup: to the end of the context; options out of range are refused", "[host]") {
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
    CHECK_THROWS_AS(session.begin(ids, {.prompt_lookup_num_tokens = session.table().verify.max_tokens}), argument_error);
    CHECK_THROWS_AS(session.begin(ids, {.prompt_lookup_num_tokens = 2, .max_matching_ngram_size = 1}), argument_error);
  }
  CHECK(drawn[0] == drawn[1]);
}
