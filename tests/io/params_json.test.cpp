// SPDX-License-Identifier: MIT
#include "intaglio/io/params_json.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

io::original_params read(const std::string& text) {
  const temporary_folder folder;
  return io::read_params_json(write_text(folder / "params.json", text));
}
std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("params_json: Mistral 7B, as published and with a window") {
  const std::string fields =
      R"("dim":4096,"n_layers":32,"head_dim":128,"hidden_dim":14336,"n_heads":32,"n_kv_heads":8,"norm_eps":1e-05,)"
      R"("vocab_size":32000)";
  const auto got = read("{" + fields + R"(,"sliding_window":4096})");
  const decoder_config mistral{.model_type = architecture::llama,
                               .hidden_size = 4096,
                               .intermediate_size = 14336,
                               .num_hidden_layers = 32,
                               .num_attention_heads = 32,
                               .num_key_value_heads = 8,
                               .head_dim = 128,
                               .vocab_size = 32000,
                               .max_position_embeddings = 32768,
                               .hidden_act = activation::silu,
                               .sliding_window = 4096};
  CHECK(got.config == mistral);
  CHECK((got.states_vocabulary && !got.states_context && !got.tied));
  CHECK(read("{" + fields + R"(,"sliding_window":null,"rope_theta":1e6,"max_seq_len":100,"tied_embeddings":true})")
            .tied == true);
  CHECK(read("{" + fields + R"(,"max_seq_len":100})").config.max_position_embeddings == 100);
  CHECK(read("{" + fields + R"(,"rope_theta":1e6})").config.rope_theta == 1e6f);
}

TEST_CASE("params_json: Meta's files leave the inner width and the vocabulary to be worked out") {
  const auto llama2 =
      read(R"({"dim":4096,"multiple_of":256,"n_heads":32,"n_layers":32,"norm_eps":1e-05,"vocab_size":-1})");
  CHECK((llama2.config.intermediate_size == 11008 && llama2.config.head_dim == 128 &&
         llama2.config.num_key_value_heads == 32 && llama2.config.max_position_embeddings == 4096));
  CHECK((!llama2.states_vocabulary && llama2.config.vocab_size == 0));
  const auto llama3 =
      read(R"({"dim":4096,"ffn_dim_multiplier":1.3,"multiple_of":1024,"n_heads":32,"n_kv_heads":8,"n_layers":32,)"
           R"("norm_eps":1e-05,"vocab_size":128256,"rope_theta":500000.0})");
  CHECK((llama3.config.intermediate_size == 14336 && llama3.config.max_position_embeddings == 8192 &&
         llama3.config.rope_scaling == rope_scaling_config{}));
  const auto scaled =
      read(R"({"dim":2048,"ffn_dim_multiplier":1.5,"multiple_of":256,"n_heads":32,"n_kv_heads":8,"n_layers":16,)"
           R"("norm_eps":1e-05,"vocab_size":128256,"rope_theta":500000.0,)"
           R"("use_scaled_rope":true,"rope_scaling_factor":32})");
  CHECK((scaled.config.intermediate_size == 8192 &&
         scaled.config.rope_scaling == rope_scaling_config{rope_type::llama3, 32.f, 1.f, 4.f, 8192} &&
         scaled.config.max_position_embeddings == 131'072));
}

TEST_CASE("params_json: what is absent, wrong or not run is refused by name") {
  const auto with = [](const std::string& fields) {
    return refusal(R"({"n_layers":2,"n_heads":4,"vocab_size":100,)" + fields + "}");
  };
  CHECK(with(R"("dim":256,"hidden_dim":512)") == "accepted");
  CHECK_THAT(with(R"("hidden_dim":512)"),
             ContainsSubstring("params.json: dim: expected a natural number, found nothing"));
  CHECK_THAT(with(R"("dim":-1)"), ContainsSubstring("dim: expected a natural number, found -1"));
  CHECK_THAT(with(R"("dim":4294967296)"), ContainsSubstring("dim: expected a number below 2^32, found 4294967296"));
  CHECK_THAT(with(R"("dim":258,"hidden_dim":512)"),
             ContainsSubstring("n_heads: expected a divisor of dim 258, found 4"));
  CHECK_THAT(with(R"("dim":256,"multiple_of":0)"),
             ContainsSubstring("multiple_of: expected a number above 0, found 0"));
  CHECK_THAT(with(R"("dim":256,"ffn_dim_multiplier":-1)"),
             ContainsSubstring("ffn_dim_multiplier: expected a number above 0, below 16, found -1"));
  CHECK_THAT(with(R"("dim":256,"multiple_of":4294967295)"),
             ContainsSubstring("multiple_of: expected an inner width of at most 4194304, found 4294967295"));
  CHECK_THAT(with(R"("dim":256,"hidden_dim":512,"moe":{"num_experts":8})"),
             ContainsSubstring("moe.num_experts_per_tok: expected a natural number, found nothing"));
  CHECK_THAT(with(R"("dim":256,"hidden_dim":512,"moe":{"num_experts":0,"num_experts_per_tok":2})"),
             ContainsSubstring("num_experts: expected a number above 0, found 0"));
  CHECK(with(R"("dim":256,"hidden_dim":512,"moe":{"num_experts":8,"num_experts_per_tok":2})") == "accepted");
  CHECK_THAT(refusal("[]"), ContainsSubstring("params.json: expected a JSON object, found array"));
  CHECK_THAT(refusal(std::string((1 << 20) + 1, ' ')), ContainsSubstring("too large for params.json"));
}

TEST_CASE("params_json: every key is read, harmless or named") {
  const auto with = [](const std::string& fields) {
    return R"({"n_layers":2,"n_heads":4,"vocab_size":100,"dim":256,"hidden_dim":512)" + fields + "}";
  };
  CHECK(read(with("")).warnings.empty());
  CHECK(read(with(R"(,"max_batch_size":8,"dropout":0.0,"odd":null)")).warnings.empty());
  const auto got = read(
      with(R"(,"dropout":0.1,"rope_scaling_factor":8,"temperature":2,"moe":{"num_experts":2,"num_experts_per_tok":1,)"
           R"("shared":3})"));
  REQUIRE(got.warnings.size() == 4);
  CHECK_THAT(got.warnings[0], ContainsSubstring("params.json: key 'dropout' acts in training alone"));
  CHECK_THAT(got.warnings[1],
             ContainsSubstring("'rope_scaling_factor' is not used by a model without use_scaled_rope"));
  CHECK_THAT(got.warnings[2], ContainsSubstring("'temperature' is unknown and not read"));
  CHECK_THAT(got.warnings[3], ContainsSubstring("'moe.shared' is unknown and not read"));
  CHECK(read(with(R"(,"use_scaled_rope":true,"rope_scaling_factor":8)")).warnings.empty());
  CHECK_THAT(refusal(with(R"(,"causal":false)")), ContainsSubstring("causal: expected true, found false"));
  CHECK_THAT(refusal(with(R"(,"use_biases":true)")), ContainsSubstring("use_biases: expected false, found true"));
  CHECK_THAT(refusal(with(R"(,"yarn":{"factor":4})")), ContainsSubstring("yarn: expected none"));
}
