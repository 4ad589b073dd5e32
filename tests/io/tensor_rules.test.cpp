// SPDX-License-Identifier: MIT
#include "intaglio/io/tensor_rules.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

using namespace intaglio;
using namespace intaglio::io;

namespace {

constexpr decoder_config model(architecture family, bool tied) {
  return {.model_type = family,
          .hidden_size = 256,
          .intermediate_size = 768,
          .num_hidden_layers = 3,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 64,
          .vocab_size = 1024,
          .max_position_embeddings = 512,
          .tie_word_embeddings = tied};
}
std::size_t required(const std::vector<tensor_rule>& rules) {
  return static_cast<std::size_t>(
      std::count_if(rules.begin(), rules.end(), [](const auto& rule) { return !rule.optional; }));
}

static_assert(is_accepted(model(architecture::bitnet, true), tensor_role::matrix, dtype::i2_s));
static_assert(is_accepted(model(architecture::bitnet, true), tensor_role::matrix, dtype::u8));
static_assert(!is_accepted(model(architecture::bitnet, true), tensor_role::matrix, dtype::q8_0));
static_assert(!is_accepted(model(architecture::llama, true), tensor_role::matrix, dtype::i2_s));
static_assert(is_accepted(model(architecture::llama, true), tensor_role::matrix, dtype::q6_k));
static_assert(is_accepted(model(architecture::bitnet, true), tensor_role::embedding, dtype::q6_k));
static_assert(!is_accepted(model(architecture::bitnet, true), tensor_role::norm, dtype::q8_0));
static_assert(!is_accepted(model(architecture::bitnet, true), tensor_role::factor, dtype::f16));

}  // namespace

TEST_CASE("tensor_rules: the tensors of each family, once each") {
  // 3 layers; formats: 11 tensors a BitNet layer, 9 a Llama layer, 13 a Gemma 3 layer, beside embedding and last norm.
  CHECK(required(tensor_rules(model(architecture::bitnet, true))) == 35);
  CHECK(required(tensor_rules(model(architecture::bitnet, false))) == 36);
  CHECK(required(tensor_rules(model(architecture::llama, false))) == 30);
  CHECK(required(tensor_rules(model(architecture::gemma3, true))) == 41);
  for (const auto family : {architecture::bitnet, architecture::llama, architecture::gemma3}) {
    std::set<std::string> names;
    for (const auto& rule : tensor_rules(model(family, true))) CHECK(names.insert(rule.name).second);
  }
}

TEST_CASE("tensor_rules: shapes are rows x columns") {
  const auto rules = tensor_rules(model(architecture::bitnet, true));
  const auto at = [&](std::string_view name) {
    return *std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.name == name; });
  };
  CHECK((at("blk.2.attn_k.weight").rows == 128 && at("blk.2.attn_k.weight").columns == 256));
  CHECK((at("blk.0.ffn_down.weight").rows == 256 && at("blk.0.ffn_down.weight").columns == 768));
  CHECK((at("blk.0.ffn_sub_norm.weight").rows == 1 && at("blk.0.ffn_sub_norm.weight").columns == 768));
  CHECK((at("blk.0.attn_q.scale").optional && at("blk.0.attn_q.scale").role == tensor_role::factor));
  CHECK((at("output.weight").optional && at("output.weight").unused));
  CHECK_FALSE(tensor_rules(model(architecture::bitnet, false)).back().unused);
  CHECK(accepted_types(model(architecture::bitnet, true), tensor_role::norm) == "f32 f16 bf16");
}
