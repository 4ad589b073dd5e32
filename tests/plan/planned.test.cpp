// SPDX-License-Identifier: MIT
#include "intaglio/plan/planned.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/plan/explain.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a plan made at run time is the engraved one", "[plan][planned]") {
  const plan::table& engraved = plan::engraved<models::fable, plan::profiles::cpu>::table;
  const plan::planned made = plan::planned::of<models::fable>(plan::profiles::cpu);
  CHECK(made.table().hash == engraved.hash);
  CHECK(plan::explain_json(made.table(), "fable") == plan::explain_json(engraved, "fable"));
  CHECK(plan::explain(made.table(), "fable") == plan::explain(engraved, "fable"));
}

TEST_CASE("a plan outlives a move", "[plan][planned]") {
  plan::planned first =
      plan::planned::of<models::gemma3<models::gemma3_270m_config, dtype::q8_0>>(plan::profiles::portable, 2048);
  const plan::planned second = std::move(first);
  CHECK(plan::verify(second.table()).empty());
  CHECK(second.table().decode.dispatch_count() == 18 * 8 + 3);
  CHECK(second.table().context == 2048);
}

TEST_CASE("what does not fit is refused by the same sentence", "[plan][planned]") {
  CHECK_THROWS_WITH((plan::planned::of<models::fable>(plan::profiles::cpu, 513)),
                    ContainsSubstring("context: expected 1 to max_position_embeddings 512, found 513"));
}

namespace {
constexpr decoder_config many_words = [] {
  decoder_config out = models::gemma3_270m_config;
  out.vocab_size = 600'000;
  return out;
}();
}  // namespace

TEST_CASE("more words than the sampler can sum up are refused", "[plan][planned]") {
  CHECK_THROWS_WITH((plan::planned::of<models::gemma3<many_words, dtype::q8_0>>(plan::profiles::portable, 256)),
                    ContainsSubstring("vocab_size: expected at most 524288") && ContainsSubstring("600000"));
}
