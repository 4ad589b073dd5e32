// SPDX-License-Identifier: MIT
// Sessions of models with recurrent layers in a batch: what they draw is what they draw alone, and none computes again
// what another, or its last turn, has left a state of.
#include "intaglio/runtime/batch_states.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "runtime/batch_and_alone.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

both batch_of(const char* model, const plan::profile& profile, const plan::batch_shape& shape) {
  io::checkpoint file = io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / "hf");
  plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model, profile, 256, shape);
  return both(std::move(plan), std::move(file));
}

/// Runs all sessions to their ends. @return what each drew, by number
std::map<std::uint64_t, std::vector<std::int32_t>> drawn_of(basic_batch& from, std::uint32_t tokens = 1) {
  std::map<std::uint64_t, std::vector<std::int32_t>> out;
  for (int i = 0; from.active() != 0 && i < 500; ++i)
    for (const batch_token& token : from.step(tokens)) out[token.of.number].push_back(token.id);
  return out;
}

/// @param embeds the model has a vector for a text, which takes the prompt's caches
void check_shared(const char* model, const plan::profile& profile, bool embeds) {
  both b = batch_of(model, profile, {.slot_count = 3, .page_size = 16});
  CHECK(b.plan.table().batch_recurrent_bytes() != 0);
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size;
  const auto ids = some_ids(90, 5, vocabulary);
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 42}, short_ones{{.temperature = 0.8f, .seed = 3}, 8};
  const auto expected = b.drawn_alone(ids, options);
  const auto answer = [&](const std::vector<std::int32_t>& prompt, std::uint32_t cached, std::uint32_t tokens,
                          const batch_options& of) {
    const batch_handle who = b.batch.join(prompt, of);
    const auto drawn = drawn_of(b.batch, tokens)[who.number];
    CHECK(b.batch.cached_tokens(who) == cached);
    return drawn;
  };
  CHECK(answer(ids, 0, 1, options) == expected);
  CHECK(answer(ids, 80, 7, options) == expected);  // all tokens except those after its last full page
  // Another turn goes on after the answer, here from what was copied at 128 while it was drawn.
  auto turn = ids;
  turn.insert(turn.end(), expected.begin(), expected.end());
  turn.insert(turn.end(), {5, 6, 7});
  CHECK(answer(turn, 128, 3, short_ones) == b.drawn_alone(turn, short_ones));
  // One that parts goes on from the end of the chunk before.
  const std::uint32_t chunk = b.plan.table().prefill.max_tokens;
  for (const std::uint32_t parts_at : {40u, 85u}) {
    auto branch = ids;
    branch[parts_at] = 7;
    CHECK(answer(branch, parts_at > 80 ? 80 : parts_at / chunk * chunk, 1, short_ones) ==
          b.drawn_alone(branch, short_ones));
  }
  // Two at once, of which the second finds what the first is fed; the state may be lost between two chunks.
  const auto other = some_ids(75, 8, vocabulary);
  const batch_handle one = b.batch.join(other, short_ones), two = b.batch.join(other, short_ones),
                     three = b.batch.join(std::span(ids).first(1), short_ones);
  b.batch.step();
  if (embeds) (void)b.batch.embed(some_ids(40, 2, vocabulary), {});
  auto drawn = drawn_of(b.batch, 2);
  const auto alone = b.drawn_alone(other, short_ones);
  CHECK(drawn[one.number] == alone);
  CHECK(drawn[two.number] == alone);
  CHECK(drawn[three.number] == b.drawn_alone({ids[0]}, short_ones));
  CHECK(b.batch.cached_tokens(two) == 64);
}

}  // namespace

TEST_CASE("sessions of a batch with recurrent layers draw what they draw alone, whatever joins and leaves",
          "[runtime]") {
  for (const char* model : {"lfm2-tiny", "qwen35-tiny", "qwen3next-tiny"}) {
    INFO(model);
    both b = batch_of(model, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
    check_mixed(b);
  }
}

TEST_CASE("sessions of a batch with short convolutions go on from states of others and of earlier turns", "[runtime]") {
  check_shared("lfm2-tiny", plan::profiles::cpu, false);
}

TEST_CASE("sessions of a batch with gated delta rules go on from states of others and of earlier turns", "[runtime]") {
  check_shared("qwen35-tiny", plan::profiles::exact, true);
}
