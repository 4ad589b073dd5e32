// SPDX-License-Identifier: MIT
// FFNs of plans made at run time in the forms that models are written down with.
#include "intaglio/plan/ffn_form.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "intaglio/graph/layers/walk_ffn.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {

template <template <dtype, dtype> class FFN>
using fable = models::bitnet_b158<models::fable_config, dtype::i2_s, dtype::i8, dtype::f16, FFN>;
template <template <dtype, dtype> class FFN>
using stories = models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32, FFN>;

constexpr decoder_config narrow_config = [] {
  decoder_config out = models::stories260k_config;
  out.hidden_size = 60;
  return out;
}();

template <class Marked, class Typed>
bool same(plan::ffn_form form, const plan::profile& target) {
  return plan::planned::of<Marked>(target, 64, {}, form).table().hash ==
         plan::planned::of<Typed>(target, 64).table().hash;
}

}  // namespace

TEST_CASE("a model's own FFNs become what walk_ffn and traced are", "[plan][planned]") {
  for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
    CHECK(same<stories<graph::gated_ffn>, stories<graph::gated_ffn>>({}, *target));
    CHECK(same<stories<graph::gated_ffn>, stories<graph::walk_ffn>>({.walk = true}, *target));
    CHECK(same<fable<graph::gated_ffn>, fable<graph::walk_ffn>>({.walk = true}, *target));
    CHECK(same<stories<graph::gated_ffn>, stories<graph::traced<32>::ffn>>({.traced = 32}, *target));
    CHECK(same<fable<graph::gated_ffn>, fable<graph::traced<8>::ffn>>({.traced = 8}, *target));
    CHECK(same<stories<graph::gated_ffn>, stories<graph::traced_walk<16>::ffn>>({.walk = true, .traced = 16}, *target));
    CHECK_FALSE(same<fable<graph::gated_ffn>, fable<graph::gated_ffn>>({.walk = true}, *target));
  }
}

TEST_CASE("what an FFN cannot be is refused with the reason", "[plan][planned]") {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const auto refused = [](auto&& make, const std::string& why) {
    CHECK_THROWS_MATCHES(make(), argument_error, MessageMatches(ContainsSubstring(why)));
  };
  refused([] { plan::planned::of<fable<graph::gated_ffn>>(plan::profiles::cpu, 64, {}, {.traced = 65}); },
          "a trace of at least 1 and at most 64 features, found 65");
  refused([] { plan::planned::of<models::mistral_7b<dtype::q4_0>>(plan::profiles::cpu, 64, {}, {.walk = true}); },
          "or weights of f32, f16 or bf16, to walk, found q4_0");
  refused(
      [] {
        plan::planned::of<models::bitnet_b158<models::fable_config, dtype::i2_s, dtype::f32>>(plan::profiles::cpu, 64,
                                                                                              {}, {.walk = true});
      },
      "to walk, found i2_s");
  refused(
      [] { plan::planned::of<models::llama<narrow_config, dtype::f16>>(plan::profiles::cpu, 64, {}, {.walk = true}); },
      ".weight: expected a multiple of 8 rows to walk in f16, found 60");
  CHECK_NOTHROW(
      plan::planned::of<models::llama<narrow_config, dtype::f32>>(plan::profiles::cpu, 64, {}, {.walk = true}));
}
