// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_config.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <iterator>

#include "hf_config_texts.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace hf_config_texts;

TEST_CASE("hf_config: what a file leaves out has the family's default") {
  const auto got = read(bitnet_with(""));
  CHECK(got.config.num_key_value_heads == 4);
  CHECK(got.config.head_dim == 64);
  CHECK(got.config.rope_theta == 500'000.f);
  CHECK(got.config.hidden_act == activation::relu_squared);
  CHECK(got.config.activation_type == dtype::i8);
  CHECK_FALSE(got.tie_word_embeddings);
  CHECK_FALSE(got.scale_divides);
  CHECK(got.warnings.empty());
}

TEST_CASE("hf_config: RoPE and activation in the spellings of transformers 4 and 5") {
  CHECK(read(bitnet_with(R"("rope_theta":500000.0)")).config.rope_theta == 500'000.f);
  CHECK(read(bitnet_with(R"("rope_parameters":{"rope_type":"default","rope_theta":500000})")).config.rope_theta ==
        500'000.f);
  CHECK(read(bitnet_with(R"("hidden_act":"silu")")).config.hidden_act == activation::silu);
  CHECK_THAT(
      refusal(bitnet_with(R"("hidden_act":"gelu")")),
      ContainsSubstring("hidden_act") && ContainsSubstring("expected relu2, silu or gelu_pytorch_tanh, found 'gelu'"));
  CHECK_THAT(refusal(bitnet_with(R"("rope_scaling":{"rope_type":"linear","factor":2.0})")),
             ContainsSubstring("expected default, found 'linear'"));
}

TEST_CASE("hf_config: the class of linear layers says whether a scale multiplies or divides") {
  CHECK(read(bitnet_with(R"("quantization_config":{"quant_method":"bitnet"})")).scale_divides);
  CHECK(read(bitnet_with(R"("quantization_config":{"linear_class":"bitlinear"})")).scale_divides);
  CHECK_FALSE(read(bitnet_with(R"("quantization_config":{"linear_class":"autobitlinear"})")).scale_divides);
  CHECK_THAT(refusal(bitnet_with(R"("quantization_config":{"linear_class":"other"})")),
             ContainsSubstring("expected bitlinear or autobitlinear, found 'other'"));
  CHECK_THAT(refusal(bitnet_with(R"("quantization_config":{"quant_method":"gptq"})")),
             ContainsSubstring("expected bitnet, found 'gptq'"));
  CHECK_THAT(refusal(bitnet_with(R"("quantization_config":{"use_rms_norm":true})")),
             ContainsSubstring("use_rms_norm: expected false, found true"));
}

TEST_CASE("hf_config: what the library does not run is refused by name") {
  CHECK_THAT(refusal(bitnet_with(R"("is_encoder_decoder":true)")),
             ContainsSubstring("is_encoder_decoder: expected none, found true"));
  CHECK_THAT(refusal(bitnet_with(R"("num_local_experts":8)")),
             ContainsSubstring("num_local_experts: expected 0, found 8"));
  CHECK_THAT(refusal(R"({"model_type":"falcon\u001b[2J"})"), ContainsSubstring("found 'falcon\\x1b[2J'"));
  CHECK_THAT(refusal("[]"), ContainsSubstring("expected a JSON object, found array"));
  CHECK_THAT(refusal(std::string((1 << 20) + 1, ' ')), ContainsSubstring("too large for a config"));
}

TEST_CASE("hf_config: scaled RoPE, in both spellings") {
  const auto llama = [](const std::string& fields) {
    return R"({"model_type":"llama","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
           R"("num_attention_heads":4,"vocab_size":1024,"max_position_embeddings":512,)"
           R"("rms_norm_eps":1e-5,)" +
           fields + "}";
  };
  const std::string llama3 = R"("rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
                             R"("original_max_position_embeddings":64})";
  const rope_scaling_config linear{.type = rope_type::linear, .factor = 2.f},
      slow{rope_type::llama3, 8.f, 1.f, 4.f, 64};
  CHECK(read(llama(R"("rope_scaling":{"type":"linear","factor":2})")).config.rope_scaling == linear);
  CHECK(read(llama(R"("rope_scaling":{)" + llama3)).config.rope_scaling == slow);
  CHECK(read(llama(R"("rope_parameters":{"rope_theta":5e5,)" + llama3)).config.rope_scaling == slow);
  CHECK(read(llama(R"("rope_parameters":{"rope_theta":5e5,)" + llama3)).config.rope_theta == 500'000.f);
  const auto yarn = [&](const std::string& more) {
    return read(
        llama(R"("rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":128)" + more + "}"));
  };
  CHECK(yarn("").config.rope_scaling == rope_scaling_config{rope_type::yarn, 4.f, 1.f, 32.f, 128, 1.1386294f, true});
  CHECK(yarn("").warnings.empty());
  CHECK(yarn(R"(,"beta_fast":16,"beta_slow":2,"truncate":false,"attention_factor":1.5)").config.rope_scaling ==
        rope_scaling_config{rope_type::yarn, 4.f, 2.f, 16.f, 128, 1.5f, false});
  CHECK(yarn(R"(,"mscale":1.0,"mscale_all_dim":1.0)").config.rope_scaling.attention_factor == 1.f);
  CHECK_THAT(refusal(llama(R"("rope_scaling":{"type":"yarn","factor":4,"beta_fast":0.5})")),
             ContainsSubstring("rope_scaling.high_freq_factor: expected a finite number above low_freq_factor 1"));
  for (const char* plain : {"null", "{}"})
    CHECK(read(llama(R"("rope_scaling":)" + std::string(plain))).config.rope_scaling == rope_scaling_config{});
  const auto dynamic = read(llama(R"("rope_scaling":{"type":"dynamic","factor":2.0})"));
  CHECK((dynamic.config.rope_scaling == rope_scaling_config{} && dynamic.warnings.empty()));
  CHECK(dynamic.config.max_position_embeddings == read(llama("\"use_cache\":true")).config.max_position_embeddings);
  const std::string shorter = R"("rope_scaling":{"type":"dynamic","factor":2.0,"original_max_position_embeddings":64})";
  CHECK(read(llama(shorter)).config.max_position_embeddings == 64);
  CHECK_THAT(refusal(llama(R"("rope_scaling":{"type":"dynamic","factor":0.5})")),
             ContainsSubstring("rope_scaling.factor: expected a number from 1, found 0.5"));
  for (const char* type : {"longrope", "spiral"})
    CHECK_THAT(refusal(llama(R"("rope_scaling":{"factor":2,"rope_type":")" + std::string(type) + "\"}")),
               ContainsSubstring("rope_scaling.rope_type: expected default, dynamic, linear, llama3 or yarn, found '" +
                                 std::string(type) + "'"));
  CHECK_THAT(refusal(llama(R"("rope_scaling":{"type":"linear"})")),
             ContainsSubstring("rope_scaling.factor: expected a number, found nothing"));
  CHECK_THAT(refusal(llama(R"("rope_scaling":{"type":"linear","factor":0.5})")),
             ContainsSubstring("rope_scaling.factor: expected a finite number from 1, found 0.5"));
  CHECK_THAT(refusal(llama(R"("partial_rotary_factor":0.5)")),
             ContainsSubstring("partial_rotary_factor: expected 1, found 0.5"));
}

TEST_CASE("hf_config: Mistral's window is stated, absent or transformers' default") {
  const auto window = [](const std::string& fields) {
    return read(R"({"model_type":"mistral","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
                R"("num_attention_heads":4,"vocab_size":1024,)"
                R"("max_position_embeddings":512,"rms_norm_eps":1e-5)" +
                fields + "}")
        .config;
  };
  CHECK(window(R"(,"sliding_window":48)").sliding_window == 48);
  CHECK(window(R"(,"sliding_window":48)").is_windowed(2));
  CHECK(window(R"(,"sliding_window":null)").sliding_window == 0);
  CHECK(window("").sliding_window == 4096);
  CHECK(window(R"(,"sliding_window":48,"layer_types":["sliding_attention","full_attention","sliding_attention"])")
            .sliding_window_pattern == 2);
  CHECK(window(R"(,"sliding_window":48,"layer_types":["full_attention","full_attention","full_attention"])")
            .sliding_window == 0);
  CHECK_THROWS_WITH(
      window(R"(,"sliding_window":48,"layer_types":["full_attention","sliding_attention","full_attention"])"),
      ContainsSubstring("layer_types: expected full_attention in every n-th layer and sliding_attention in the others, "
                        "found another order"));
  CHECK_THROWS_WITH(window(R"(,"sliding_window":48,"layer_types":["full_attention"])"),
                    ContainsSubstring("layer_types: expected 3 entries, found 1"));
}

TEST_CASE("hf_config: sizes are natural numbers below 2^32, and heads add up") {
  CHECK_THAT(refusal(bitnet_with(R"("head_dim":4294967296)")),
             ContainsSubstring("head_dim: expected a number below 2^32, found 4294967296"));
  CHECK_THAT(refusal(bitnet_with(R"("head_dim":-64)")),
             ContainsSubstring("head_dim: expected a natural number, found -64"));
  CHECK_THAT(refusal(bitnet_with(R"("head_dim":0)")), ContainsSubstring("head_dim: expected 1 to"));
  CHECK(refusal(bitnet_with(R"("num_local_experts":0)")) == "accepted");
  CHECK_THAT(refusal(bitnet_with(R"("attention_bias":"no")")),
             ContainsSubstring("attention_bias: expected true or false, found \"no\""));
  const auto heads = [](const char* count) {
    return std::string(R"({"model_type":"bitnet","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
                       R"("vocab_size":1024,"max_position_embeddings":512,"rms_norm_eps":1e-5,)"
                       R"("num_attention_heads":)") +
           count + "}";
  };
  CHECK(refusal(heads("4")) == "accepted");
  CHECK_THAT(refusal(heads("3")),
             ContainsSubstring("num_attention_heads: expected a divisor of hidden_size 256, found 3"));
  CHECK_THAT(refusal(heads("0")),
             ContainsSubstring("num_attention_heads: expected a divisor of hidden_size 256, found 0"));
}

TEST_CASE("hf_config: Gemma's activation under its old name and its new one") {
  const auto gemma = [](const std::string& fields) {
    return R"({"model_type":"gemma3_text","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
           R"("num_attention_heads":4,"vocab_size":1024,)"
           R"("max_position_embeddings":512,"rms_norm_eps":1e-6)" +
           (fields.empty() ? "" : "," + fields) + "}";
  };
  for (const char* fields : {"", R"("hidden_act":"gelu_pytorch_tanh")", R"("hidden_activation":"gelu_pytorch_tanh")"})
    CHECK(read(gemma(fields)).config.hidden_act == activation::gelu_tanh);
  CHECK(read(gemma("")).tie_word_embeddings == true);
  // Gemma3TextConfig's defaults, on which the published files rely.
  const auto plain = read(gemma("")).config;
  CHECK((plain.head_dim == 256 && plain.num_key_value_heads == 4 && plain.query_pre_attn_scalar == 0 &&
         plain.rope_theta == 1e6f));
  CHECK((plain.sliding_window == 4096 && plain.sliding_window_pattern == 6 && plain.rope_local_base_freq == 10'000.f));
  CHECK(read(gemma(R"("query_pre_attn_scalar":168)")).config.query_pre_attn_scalar == 168);
  CHECK_THAT(refusal(gemma(R"("final_logit_softcapping":30.0)")),
             ContainsSubstring("final_logit_softcapping: expected none, found 30.0"));
  // Its tokens see each other: an encoder with the same layers.
  const auto encoder = read(gemma(R"("use_bidirectional_attention":true,"sliding_window":512)")).config;
  CHECK((encoder.model_type == architecture::gemma_embedding && plain.model_type == architecture::gemma3));
  CHECK((encoder.sliding_window == 512 && encoder.sliding_window_pattern == 6 && encoder.dense_features == 0));
  CHECK((encoder.rope_local_base_freq == 10'000.f && encoder.head_dim == 256));
  CHECK_THAT(refusal(gemma(R"("use_bidirectional_attention":"all")")),
             ContainsSubstring("use_bidirectional_attention"));
  CHECK_THAT(refusal(gemma(R"("hidden_activation":"relu")")),
             ContainsSubstring("hidden_activation: expected relu2, silu or gelu_pytorch_tanh, found 'relu'"));
}

TEST_CASE("hf_config: every key is read, harmless or named") {
  using io::config_key_use;
  for (const std::string family : {"bitnet", "llama", "mistral", "mixtral", "gemma3_text"}) {
    CAPTURE(family);
    CHECK(read(of_family(family, "")).warnings.empty());
    for (const io::config_key_rule& rule : io::hf_key_rules) {
      CAPTURE(rule.key);
      const auto with = [&](const char* value) {
        return of_family(family, "\"" + std::string(rule.key) + "\":" + value);
      };
      if (rule.use == config_key_use::harmless) CHECK(read(with("7")).warnings.empty());
      if (rule.use == config_key_use::training) {
        for (const char* none : {"0", "0.0", "null", "false"}) CHECK(read(with(none)).warnings.empty());
        REQUIRE(read(with("0.1")).warnings.size() == 1);
        CHECK_THAT(read(with("0.1")).warnings[0],
                   ContainsSubstring("config.json: key '" + std::string(rule.key) + "' acts in training alone"));
      }
      const bool off = rule.use == config_key_use::off || rule.use == config_key_use::own;  // none of these has one
      if (off) {
        for (const char* none : {"0", "false", "null", "[]", "{}"}) CHECK(read(with(none)).warnings.empty());
        CHECK_THAT(refusal(with("true")), ContainsSubstring(std::string(rule.key) + ": expected none, found true"));
      }
      if (!off && !rule.is_of(family)) {
        CHECK(read(with("null")).warnings.empty());
        REQUIRE(read(with("7")).warnings.size() == 1);
        CHECK_THAT(read(with("7")).warnings[0], ContainsSubstring("' is not used by " + family));
      }
    }
  }
  const auto odd = read(of_family("llama", R"("rope_thetta":5e5,"logits_scaling":8,"nothing":null)"));
  REQUIRE(odd.warnings.size() == 2);
  CHECK_THAT(odd.warnings[0], ContainsSubstring("config.json: key 'logits_scaling' is not used by llama"));
  CHECK_THAT(odd.warnings[1], ContainsSubstring("key 'rope_thetta' is unknown"));
  const auto nested = read(of_family(
      "llama",
      R"("rope_scaling":{"rope_type":"linear","factor":2,"low_freq_factor":1.0,"share":1.0,"rope_theta":10000})"));
  REQUIRE(nested.warnings.size() == 2);
  CHECK_THAT(nested.warnings[0], ContainsSubstring("key 'rope_scaling.low_freq_factor' is not used by linear"));
  CHECK_THAT(nested.warnings[1], ContainsSubstring("key 'rope_scaling.share' is unknown"));
  CHECK_THAT(read(of_family("llama", R"("rope_scaling":{"factor":4})")).warnings.at(0),
             ContainsSubstring("key 'rope_scaling.factor' is not used by default"));
  std::string many;
  for (int i = 0; i < 30; ++i) many += (i ? ",\"x" : "\"x") + std::to_string(i) + "\":1";
  CHECK(read(of_family("llama", many)).warnings.size() == 17);
  CHECK_THAT(read(of_family("llama", many)).warnings.back(), ContainsSubstring("and 14 more keys are not used"));
  // The text model's object, and the object around it.
  const std::string inner = of_family("gemma3_text", R"("odd":1)");
  const auto outer = read(
      R"({"model_type":"gemma3","vision_config":{"a":1},"hidden_size":9,"mm_tokens_per_image":256,"text_config":)" +
      inner + "}");
  REQUIRE(outer.warnings.size() == 2);
  CHECK_THAT(outer.warnings[0], ContainsSubstring("key 'text_config.odd' is unknown"));
  CHECK_THAT(outer.warnings[1], ContainsSubstring("key 'hidden_size' is unknown"));
  CHECK(outer.config.hidden_size == 256);
}

TEST_CASE("hf_config: what is absent has the default of its family's configuration class") {
  CHECK(read(of_family("mixtral", "")).config.rope_theta == 1e6f);
  CHECK(read(of_family("mistral", "")).config.rope_theta == 10'000.f);
  CHECK(read(of_family("llama", "")).config.num_key_value_heads == 16);
  for (const char* family : {"mistral", "mixtral"}) {
    CHECK(read(of_family(family, "")).config.num_key_value_heads == 8);
    CHECK(read(of_family(family, R"("num_key_value_heads":null)")).config.num_key_value_heads == 16);
  }
}

TEST_CASE("hf_config: numbers out of range, or twice and at odds, are refused") {
  const auto with = [](const std::string& fields) { return refusal(of_family("llama", fields)); };
  CHECK_THAT(with(R"("rope_theta":-1)"), ContainsSubstring("rope_theta: expected a finite number from 1, found -1"));
  CHECK_THAT(with(R"("rope_theta":1e300)"),
             ContainsSubstring("rope_theta: expected a finite number from 1, found inf"));
  CHECK_THAT(with(R"("rope_theta":NaN)"), ContainsSubstring("config.json: offset 0x"));
  CHECK_THAT(
      with(R"("rope_theta":10000,"rope_parameters":{"rope_theta":5e5})"),
      ContainsSubstring("rope_theta and rope_parameters.rope_theta: expected one value, found 10000 and 500000"));
  CHECK_THAT(with(R"("rope_scaling":{"type":"linear","factor":2},"rope_parameters":{"rope_type":"linear","factor":4})"),
             ContainsSubstring("rope_scaling.factor and rope_parameters.factor: expected one value, found 2 and 4"));
  CHECK_THAT(with(R"("rope_scaling":{"type":"linear","factor":2},"rope_parameters":{"rope_type":"default"})"),
             ContainsSubstring("rope_parameters.rope_type: expected linear, found 'default'"));
  CHECK_THAT(with(R"("quantization_config":{"quant_method":"gptq","bits":4})"),
             ContainsSubstring("quantization_config.quant_method: expected none for llama, found 'gptq'"));
  const std::string slow =
      R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4)";
  const auto from = [&](const std::string& fields) {
    return read(of_family("llama", fields)).config.rope_scaling.original_max_position_embeddings;
  };
  CHECK(from(slow + "}") == 512);
  CHECK(from(slow + R"(,"original_max_position_embeddings":64})") == 64);
  CHECK(from(slow + R"(,"original_max_position_embeddings":64},"original_max_position_embeddings":128)") == 128);
}

TEST_CASE("hf_config: each key has one rule, since the first one counts") {
  using io::hf_key_rules;
  const auto rules_of = [](std::string_view key, const auto& rules) {
    return std::count_if(std::begin(rules), std::end(rules), [&](const auto& other) { return other.key == key; });
  };
  for (const auto& rule : hf_key_rules) CHECK(rules_of(rule.key, hf_key_rules) == 1);
  for (const auto& rule : io::hf_layer_norm_key_rules)
    CHECK((rules_of(rule.key, io::hf_layer_norm_key_rules) == 1 && rules_of(rule.key, hf_key_rules) == 0));
}
