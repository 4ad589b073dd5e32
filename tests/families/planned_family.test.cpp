// SPDX-License-Identifier: MIT
#include "intaglio/families/planned_family.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>

#include "intaglio/plan/explain.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using families::planned_of;
using families::weight_types;

namespace {

/// A plan made from a config has the table that the model's type gives.
template <class Model>
void check_equal(const weight_types& types, const plan::profile& target, std::uint32_t context) {
  const plan::planned typed = plan::planned::of<Model>(target, context);
  const plan::planned made = planned_of(Model::config, types, Model::name, target, context);
  INFO(Model::name << ' ' << name(types.layers) << ' ' << target.name);
  CHECK(made.table().hash == typed.table().hash);
  CHECK(plan::explain_json(made.table(), "x") == plan::explain_json(typed.table(), "x"));
}

template <template <dtype> class Model, dtype W>
void check_in() {
  constexpr std::uint32_t hidden = Model<W>::config.hidden_size;
  constexpr dtype head = graph::head_type(W, hidden);
  check_equal<Model<W>>({W, head, head}, plan::profiles::cpu, 512);
  check_equal<Model<W>>({W, head, head}, plan::profiles::portable, 512);
}

}  // namespace

TEST_CASE("a config's plan is its model type's", "[families]") {
  check_equal<models::fable>({}, plan::profiles::cpu, 512);
  check_equal<models::bitnet_2b_4t>({}, plan::profiles::portable, 4096);
  check_in<models::mistral_7b, dtype::q4_0>();
  check_in<models::mistral_7b_v01, dtype::bf16>();
  check_in<models::llama_3_8b, dtype::q6_k>();
  check_in<models::llama_31_8b, dtype::q8_0>();
  check_in<models::llama_32_1b, dtype::q4_k>();
  check_in<models::stories260k, dtype::f32>();
  check_in<models::gemma3_270m, dtype::q8_0>();
  check_in<models::gemma3_1b, dtype::q4_1>();
  check_in<models::gemma3_4b, dtype::f16>();
  check_in<models::mixtral_8x7b, dtype::q4_0>();
  check_in<models::qwen3_06b, dtype::bf16>();
  check_in<models::qwen3_17b, dtype::q4_k>();
  check_in<models::qwen3_4b, dtype::q8_0>();
  check_in<models::qwen3_8b, dtype::q4_0>();
  check_in<models::qwen3_30b_a3b, dtype::q4_k>();
  check_in<models::qwen25_05b, dtype::q8_0>();
  check_in<models::qwen25_15b, dtype::bf16>();
  check_in<models::qwen25_3b, dtype::q4_0>();
  check_in<models::qwen25_7b, dtype::q4_k>();
}

TEST_CASE("the plan of fable is the engraved one", "[families]") {
  const plan::planned made = planned_of(models::fable_config, {}, "fable", plan::profiles::cpu, 512);
  CHECK(made.table().hash == plan::engraved<models::fable, plan::profiles::cpu>::table.hash);
}

TEST_CASE("a config's plan owns the config", "[families]") {
  plan::planned made = [] {
    const decoder_config here = models::stories260k_config;
    return planned_of(here, {dtype::f32, dtype::f32, dtype::f32}, std::string("story"), plan::profiles::cpu, 64);
  }();
  const plan::planned moved = std::move(made);
  CHECK(*moved.table().config == models::stories260k_config);
  CHECK(moved.table().model == "story");
  CHECK(plan::verify(moved.table()).empty());
}

TEST_CASE("rows that blocks do not divide are refused in one sentence", "[families]") {
  CHECK_THROWS_WITH(
      planned_of(models::stories260k_config, {dtype::q4_k, dtype::f16, dtype::f16}, "story", plan::profiles::cpu, 64),
      ContainsSubstring("blk.*.attn_q.weight: expected columns in multiples of 256 (q4_k blocks)"));
}

TEST_CASE("a Qwen3 decodes with all layers in one dispatch", "[families]") {
  const auto resident = [](const decoder_config& c, dtype codec) {
    const dtype head = graph::head_type(codec, c.hidden_size);
    const plan::planned made = planned_of(c, {codec, head, head}, "qwen3", plan::profiles::portable, 4096);
    CHECK(plan::verify(made.table()).empty());
    return !made.table().decode_in_one.in_one.empty();
  };
  CHECK(resident(models::qwen3_06b_config, dtype::bf16));
  CHECK(resident(models::qwen3_06b_config, dtype::q4_0));
  CHECK(resident(models::qwen3_17b_config, dtype::bf16));
  CHECK(resident(models::qwen3_4b_config, dtype::bf16));
  CHECK(resident(models::qwen3_4b_config, dtype::q8_0));
  CHECK(resident(models::qwen3_8b_config, dtype::q8_0));
  CHECK(resident(models::qwen3_8b_config, dtype::q4_0));
}
