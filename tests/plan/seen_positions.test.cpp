// SPDX-License-Identifier: MIT
// Plans whose attention is broken on purpose: verify must refuse each, in words.
#include "intaglio/plan/seen_positions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/gemma_embedding.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/plan/verify.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring, Catch::Matchers::EndsWith, Catch::Matchers::StartsWith;

namespace {
// An encoder with layers of two kinds: most see 256 positions on either side of a token, the others see all.
constexpr const plan::table& encoder =
    plan::engraved<models::embeddinggemma_300m<>, plan::profiles::portable, 1024>::table;
constexpr const plan::table& decoder = plan::engraved<models::fable, plan::profiles::portable>::table;

constexpr bool attends(const plan::dispatch& d) { return plan::verification::seen_positions_of(d).attends; }
constexpr std::uint32_t& constant(plan::dispatch& d, std::string_view name) {
  return d.specialization[kernels::interface_of(d.kernel).specialization_index(name)];
}

/// What verify says of a table after a change of a sequence and of its first attention.
constexpr text<256> refused(plan::table table, plan::sequence plan::table::*which, auto&& change) {
  plan::sequence& s = table.*which;
  std::vector<plan::dispatch> period(s.period.begin(), s.period.end());
  std::size_t at = 0;
  while (at < period.size() && !attends(period[at])) ++at;
  change(s, period, at);
  s.period = period;
  return plan::verify(table);
}
/// What verify says after a change of one constant of the first attention.
constexpr text<256> refused(const plan::table& table, plan::sequence plan::table::*which, std::string_view name,
                            std::uint32_t value) {
  return refused(table, which, [&](auto&, auto& period, std::size_t at) { constant(period[at], name) = value; });
}
std::string refusal(auto&&... parts) { return std::string(refused(parts...).view()); }

constexpr auto unchanged = [](auto&, auto&, std::size_t) {};
static_assert(refused(encoder, &plan::table::decode, unchanged).empty() &&
              refused(decoder, &plan::table::decode, unchanged).empty());
// In constant expressions too: this is what engraved asserts.
static_assert(!refused(decoder, &plan::table::decode, "ahead", 1).empty());
static_assert(!refused(encoder, &plan::table::prefill, "window", 256).empty());

// Half of the window in front of a token, with the token itself, and half after it; the other layers see all.
static_assert([] {
  for (const auto* s : {&encoder.decode, &encoder.prefill})
    for (const auto& d : s->period)
      if (const auto sees = plan::verification::seen_positions_of(d); sees.attends)
        if (sees.window != (d.block == 0 ? 257u : 0u) || sees.ahead != (d.block == 0 ? 256u : ir::all_ahead) ||
            sees.ring != 0 || sees.held != 1024)
          return false;
  return encoder.prefill.max_tokens == 1024;
}());
}  // namespace

TEST_CASE("a token whose logits predict the next one sees no position after it", "[plan][seen_positions]") {
  for (const auto which : {&plan::table::decode, &plan::table::logits, &plan::table::verify}) {
    REQUIRE((decoder.*which).layers != 0);
    const std::string name((decoder.*which).name);
    CHECK_THAT(refusal(decoder, which, "ahead", 1u),
               StartsWith(name + ": attention (") &&
                   EndsWith("): expected no positions ahead of a token in a pass whose logits predict the next token, "
                            "found 1"));
  }
  // Nor does a token of an encoder whose decode has a head.
  CHECK_THAT(refusal(encoder, &plan::table::decode, [](plan::sequence& s, auto&, std::size_t) { s.has_head = true; }),
             ContainsSubstring("in a pass whose logits predict the next token, found 256"));
}

TEST_CASE("rows of a batch see no position after them", "[plan][seen_positions]") {
  const auto of = plan::planned::of<models::fable>(plan::profiles::portable,
                                                   models::fable::config.max_position_embeddings, {.slot_count = 4});
  REQUIRE(plan::verify(of.table()).empty());
  CHECK_THAT(refusal(of.table(), &plan::table::batch, "ahead", 1u),
             ContainsSubstring("expected no positions ahead of a token in a batch, whose rows are tokens of different "
                               "texts, found 1"));
}

TEST_CASE("steps of a resident dispatch see no position after a token", "[plan][seen_positions]") {
  REQUIRE(!decoder.resident_decode.resident.empty());
  CHECK_THAT(refusal(decoder, &plan::table::resident_decode, "ahead", 1u),
             ContainsSubstring("expected no positions ahead of a token in a step of a resident dispatch, which sees "
                               "none, found 1"));
}

TEST_CASE("a pass whose tokens see each other has the whole text", "[plan][seen_positions]") {
  CHECK_THAT(
      refusal(encoder, &plan::table::prefill, [](plan::sequence& s, auto&, std::size_t) { s.max_tokens = 1023; }),
      ContainsSubstring("expected a pass over all 1024 positions of the context, whose tokens see ahead, found one "
                        "over 1023"));
  // The chunks of a decoder are no whole text.
  CHECK_THAT(refusal(decoder, &plan::table::prefill,
                     [](plan::sequence& s, auto& period, std::size_t at) {
                       s.max_tokens = decoder.context / 2;
                       constant(period[at], "ahead") = ir::all_ahead;
                     }),
             ContainsSubstring("expected a pass over all "));
}

TEST_CASE("all passes see the same positions", "[plan][seen_positions]") {
  for (const std::uint32_t ahead : {0u, 255u, ir::all_ahead})
    CHECK_THAT(
        refusal(encoder, &plan::table::prefill, "ahead", ahead),
        ContainsSubstring("expected 256 positions ahead of a token, as in decode, found " + std::to_string(ahead)));
  CHECK_THAT(refusal(encoder, &plan::table::decode, "ahead", 0u),
             ContainsSubstring("prefill: attention (attention_f16): expected 0 positions ahead of a token, as in "
                               "decode, found 256"));
  for (const auto which : {&plan::table::decode, &plan::table::prefill})
    CHECK_THAT(refusal(encoder, which, "window", 512u),
               ContainsSubstring("expected the window of its cache, 257 positions, found 512"));
}

TEST_CASE("a cache holds the positions that a pass sees and writes", "[plan][seen_positions]") {
  CHECK_THAT(refusal(encoder, &plan::table::prefill, "context", 1023u),
             ContainsSubstring("expected a cache that holds the 1024 positions that the pass sees and writes, found "
                               "one of 1023"));
  // A ring in which the pass's last positions overwrite those that its first token sees.
  CHECK_THAT(refusal(encoder, &plan::table::prefill, "ring", 1u),
             ContainsSubstring("expected a cache that holds the 1280 positions that the pass sees and writes, found "
                               "one of 1024"));
  // A ring of a decoder with a window of 1,024 holds 1,536 positions for chunks of 512.
  const auto of = plan::planned::of<models::gemma3_4b<>>(plan::profiles::portable, 4096);
  REQUIRE(of.table().caches[0].positions == 1536);
  CHECK_THAT(refusal(of.table(), &plan::table::prefill, "context", 1280u),
             ContainsSubstring("holds the 1535 positions that the pass sees and writes, found one of 1280"));
}

TEST_CASE("a pass writes the keys and values that its attention reads", "[plan][seen_positions]") {
  for (const plan::table* of : {&encoder, &decoder})
    for (const auto which : {&plan::table::decode, &plan::table::prefill})
      for (const auto where : {plan::region::keys, plan::region::values}) {
        CAPTURE((of->*which).name, plan::name(where));
        const std::string expected =
            "expected the " + std::string(plan::name(where)) + " of the pass to be written before it in its layer";
        CHECK_THAT(refusal(*of, which,
                           [&](auto&, auto& period, std::size_t at) {
                             for (std::size_t i = 0; i < at; ++i)
                               for (plan::access& each : period[i].accesses)
                                 if (each.where == where) each.write = false;
                           }),
                   ContainsSubstring(expected));
        // A write of some of them is not enough.
        CHECK_THAT(refusal(*of, which,
                           [&](auto&, auto& period, std::size_t at) {
                             for (std::size_t i = 0; i < at; ++i)
                               for (plan::access& each : period[i].accesses)
                                 if (each.where == where) each.bytes -= 16;
                           }),
                   ContainsSubstring(expected));
      }
}

TEST_CASE("each span that a token sees has a workgroup", "[plan][seen_positions]") {
  // A window of 257 and 256 positions ahead are in at most 3 spans of 256; without the positions ahead, in 2.
  CHECK_THAT(refusal(encoder, &plan::table::decode, "splits", 2u),
             ContainsSubstring("expected a workgroup for each of the 3 spans that a token sees, found 2"));
  CHECK(refusal(encoder, &plan::table::decode, "splits", 3u).empty());
}
