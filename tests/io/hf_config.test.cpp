// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_config.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <iterator>

#include "files.hpp"
#include "intaglio/models/nemotron_h.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

/// A sound config with more fields, or with others in their place.
std::string bitnet_with(const std::string& fields) {
  return R"({"model_type":"bitnet","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
         R"("num_attention_heads":4,"vocab_size":1024,)"
         R"("max_position_embeddings":512,"rms_norm_eps":1e-5)" +
         (fields.empty() ? "" : "," + fields) + "}";
}
io::hf_config read(const std::string& text) {
  const temporary_folder folder;
  return io::read_hf_config(write_text(folder / "config.json", text));
}
std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

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

namespace {

std::string of_family(const std::string& family, const std::string& fields) {
  return R"({"model_type":")" + family +
         R"(","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,"num_attention_heads":16,)"
         R"("vocab_size":1024,)"
         R"("max_position_embeddings":512,"rms_norm_eps":1e-5)" +
         (fields.empty() ? "" : "," + fields) + "}";
}

}  // namespace

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

TEST_CASE("hf_config: a Qwen3 with experts") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"qwen3_moe","hidden_size":256,"intermediate_size":768,"moe_intermediate_size":128,)"
           R"("num_hidden_layers":3,"num_attention_heads":4,"vocab_size":1024,"max_position_embeddings":512,)"
           R"("rms_norm_eps":1e-6)" +
           (fields.empty() ? "" : "," + fields) + "}";
  };
  const decoder_config plain = read(with(R"("mlp_only_layers":[])")).config;
  CHECK((plain.intermediate_size == 128 && plain.num_local_experts == 128 && plain.num_experts_per_tok == 8));
  CHECK_FALSE(plain.norm_topk_prob);
  const auto stated = read(with(R"("norm_topk_prob":true,"num_experts":16,"num_experts_per_tok":4)"));
  CHECK((stated.config.norm_topk_prob && stated.config.num_local_experts == 16));
  CHECK(stated.warnings.empty());
  CHECK_THAT(refusal(with(R"("decoder_sparse_step":2)")), ContainsSubstring("decoder_sparse_step: expected 1"));
  CHECK_THAT(refusal(with(R"("mlp_only_layers":[1])")), ContainsSubstring("mlp_only_layers"));
  CHECK_THAT(refusal(with(R"("num_experts":0)")), ContainsSubstring("num_experts: expected a number above 0, found 0"));
}

TEST_CASE("hf_config: a Qwen2, whose window is inert") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"qwen2","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,)"
           R"("num_attention_heads":8,"num_key_value_heads":2,"vocab_size":1024,"max_position_embeddings":512,)"
           R"("rms_norm_eps":1e-6,"sliding_window":64,"max_window_layers":2)" +
           (fields.empty() ? "" : "," + fields) + "}";
  };
  const auto plain = read(with(R"("use_sliding_window":false,"use_mrope":false)"));
  CHECK((plain.config.model_type == architecture::qwen2 && plain.config.head_dim == 32));
  CHECK(plain.config.sliding_window == 0);
  CHECK(plain.warnings.empty());
  CHECK_THAT(refusal(with(R"("use_sliding_window":true)")),
             ContainsSubstring("use_sliding_window: expected false, found true"));
  CHECK_THAT(refusal(with(R"("use_mrope":true)")), ContainsSubstring("use_mrope"));
}

TEST_CASE("hf_config: of text alone a Qwen-VL is a Qwen2 or a Qwen3") {
  const std::string sizes =
      R"("hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000,)"
      R"("num_key_value_heads":2,"head_dim":64,"max_position_embeddings":512,"rms_norm_eps":1e-6,"rope_theta":1e6)";
  const auto plain = [&](const std::string& type) { return read(R"({"model_type":")" + type + "\"," + sizes + "}"); };
  const std::string sections = R"(,"rope_scaling":{"mrope_interleaved":true,"mrope_section":[8,12,12],"rope_type":)";
  const auto third = read(R"({"model_type":"qwen3_vl","image_token_id":9,"vision_start_token_id":8,"vision_config":{},)"
                          R"("text_config":{"model_type":"qwen3_vl_text",)" +
                          sizes + sections + R"("default"}}})");
  CHECK((third.config == plain("qwen3").config && third.warnings.empty()));
  const auto second = read(R"({"model_type":"qwen2_5_vl",)" + sizes + sections + R"("mrope"}})");
  CHECK((second.config == plain("qwen2").config && second.warnings.empty()));
  CHECK_THAT(refusal(R"({"model_type":"qwen2",)" + sizes + sections + R"("mrope"}})"), ContainsSubstring("mrope"));
}

TEST_CASE("hf_config: layers without rotation come every n-th, as SmolLM3 states them") {
  const auto with = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":256,"intermediate_size":768,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1024,"max_position_embeddings":512,"rms_norm_eps":1e-6)" +
           (fields.empty() ? "" : "," + fields) + "}";
  };
  CHECK(read(with("smollm3", "")).config.no_rope_layer_interval == 4);
  CHECK(read(with("smollm3", R"("no_rope_layer_interval":3)")).config.no_rope_layer_interval == 3);
  CHECK(read(with("smollm3", R"("no_rope_layers":[1,0,1,0])")).config.no_rope_layer_interval == 2);
  CHECK(read(with("smollm3", R"("no_rope_layers":[1,1,1,1])")).config.no_rope_layer_interval == 0);
  CHECK_THAT(refusal(with("smollm3", R"("no_rope_layers":[0,1,1,1])")),
             ContainsSubstring("no_rope_layers: expected 0 for every n-th layer"));
  CHECK_THAT(refusal(with("smollm3", R"("no_rope_layers":[1,1,0])")), ContainsSubstring("expected 4 entries, found 3"));
  CHECK_THAT(refusal(with("llama", R"("no_rope_layers":[1,1,1,0])")),
             ContainsSubstring("no_rope_layers: expected none for llama"));
  CHECK(read(with("llama", R"("no_rope_layers":[1,1,1,1])")).config.no_rope_layer_interval == 0);
}

TEST_CASE("hf_config: multipliers of a Granite") {
  const auto with = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":256,"intermediate_size":768,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1024,"max_position_embeddings":512,"rms_norm_eps":1e-6)" +
           (fields.empty() ? "" : "," + fields) + "}";
  };
  const auto plain = read(with("granite", "")).config;
  CHECK((plain.embedding_multiplier == 1 && plain.attention_multiplier == 1 && plain.residual_multiplier == 1 &&
         plain.logits_scaling == 1));
  const auto stated = read(with("granite", R"("residual_multiplier":0.22,"logits_scaling":8)"));
  CHECK((stated.config.residual_multiplier == 0.22f && stated.config.logits_scaling == 8));
  CHECK(stated.warnings.empty());
  CHECK_THAT(refusal(with("granite", R"("logits_scaling":0)")),
             ContainsSubstring("logits_scaling: expected a number above 0"));
  CHECK_THAT(read(with("llama", R"("residual_multiplier":0.22)")).warnings.at(0),
             ContainsSubstring("residual_multiplier' is not used by llama"));
}

TEST_CASE("hf_config: a Phi's rotation and window") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"phi3","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,)"
           R"("num_attention_heads":16,"vocab_size":1000,"max_position_embeddings":131072,"rms_norm_eps":1e-5,)"
           R"("original_max_position_embeddings":4096)" +
           (fields.empty() ? "" : "," + fields) + "}";
  };
  const std::string factors = R"("short_factor":[1,1,1,1,1,1],"long_factor":[1,2,3,4,5,6])";
  const auto mini = read(with(R"("sliding_window":262144,"partial_rotary_factor":0.75,)"
                              R"("rope_scaling":{"type":"longrope",)" +
                              factors + "}"));
  CHECK(mini.warnings.empty());
  CHECK((mini.config.sliding_window == 0 && mini.config.rotary_dim == 12));
  CHECK(mini.config.rope_scaling.type == rope_type::longrope);
  CHECK(mini.config.rope_scaling.attention_factor == 1.1902380714238083f);  // that of Phi-4-mini
  CHECK((mini.config.rope_factors.long_factor[5] == 6 && mini.config.rope_factors.long_factor[6] == 0));
  CHECK(read(with(R"("sliding_window":2047)")).config.sliding_window == 2047);
  CHECK(read(with(R"("sliding_window":null)")).config.sliding_window == 0);
  CHECK_THAT(refusal(with(R"("rope_scaling":{"type":"longrope",)" + factors + "}")),
             ContainsSubstring("short_factor: expected 8 factors, one a pair of channels, found 6"));
  CHECK_THAT(refusal(with(R"("partial_rotary_factor":0.2)")), ContainsSubstring("an even number of channels"));
  CHECK_THAT(refusal(with(R"("rope_scaling":{"rope_type":"spiral","factor":4})")), ContainsSubstring("found 'spiral'"));
}

TEST_CASE("hf_config: a Granite that is written as a hybrid has attention in all layers") {
  const auto with = [](const std::string& types, const std::string& fields) {
    return R"({"model_type":"granitemoehybrid","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,)"
           R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5,)"
           R"("shared_intermediate_size":768,"num_local_experts":0,"num_experts_per_tok":0,"mamba_d_conv":4,)"
           R"("layer_types":)" +
           types + (fields.empty() ? "" : "," + fields) + "}";
  };
  const auto dense = read(with(R"(["attention","attention"])", R"("position_embedding_type":"rope")"));
  CHECK((dense.config.model_type == architecture::granite && dense.config.intermediate_size == 768));
  CHECK(dense.warnings.empty());
  CHECK_THAT(refusal(with(R"(["attention","attention"])", "")),
             ContainsSubstring("position_embedding_type: expected rope, found 'none'"));
  CHECK_THAT(refusal(with(R"(["conv","attention"])", R"("position_embedding_type":"rope")")),
             ContainsSubstring("expected mamba or attention, found \"conv\""));
  CHECK_THAT(refusal(with("null", R"("position_embedding_type":"rope")")), ContainsSubstring("layer_types"));
}

TEST_CASE("hf_config: a Granite with experts and without states, under each of its names") {
  const std::string sizes =
      R"("hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000,)"
      R"("max_position_embeddings":512,"rms_norm_eps":1e-5,"num_local_experts":16,"num_experts_per_tok":4)";
  const auto of = [&](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type + "\"," + sizes + fields + "}";
  };
  const auto alone = read(of("granitemoe", ""));
  CHECK((alone.config.model_type == architecture::granitemoe && alone.warnings.empty()));
  CHECK((alone.config.num_local_experts == 16 && alone.config.num_experts_per_tok == 4));
  CHECK((alone.config.intermediate_size == 512 && alone.config.shared_expert_intermediate_size == 0));
  const auto shared = read(of("granitemoeshared", R"(,"shared_intermediate_size":768)")),
             hybrid = read(of("granitemoehybrid", R"(,"shared_intermediate_size":768,"position_embedding_type":"rope",)"
                                                  R"("layer_types":["attention","attention"])"));
  CHECK((shared.config.shared_expert_intermediate_size == 768 && shared.config == hybrid.config));
  CHECK((shared.warnings.empty() && hybrid.warnings.empty()));
  CHECK_THAT(refusal(of("granitemoeshared", R"(,"shared_intermediate_size":5000000)")),
             ContainsSubstring("shared_intermediate_size: expected 1 to 4194304, found 5000000"));
  CHECK_THAT(refusal(of("olmoe", R"(,"clip_qkv":8.0)")), ContainsSubstring("clip_qkv: expected none, found 8.0"));
}

TEST_CASE("hf_config: an LFM2 with experts states its router and its dense layers") {
  const auto of = [](const std::string& fields) {
    return R"({"model_type":"lfm2_moe","hidden_size":256,"intermediate_size":512,"moe_intermediate_size":128,)"
           R"("num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1000,"norm_eps":1e-5,)"
           R"("max_position_embeddings":512,"layer_types":["conv","conv","full_attention","conv"])" +
           fields + "}";
  };
  const auto usual = read(of("")), stated = read(of(R"(,"num_dense_layers":1,"use_expert_bias":false,"num_experts":8,)"
                                                    R"("routed_scaling_factor":2.5,"norm_topk_prob":false)"));
  CHECK((usual.config.model_type == architecture::lfm2moe && usual.warnings.empty() && stated.warnings.empty()));
  CHECK((usual.config.num_local_experts == 32 && usual.config.num_experts_per_tok == 4));
  CHECK((usual.config.intermediate_size == 128 && usual.config.dense_intermediate_size == 512));
  CHECK((usual.config.num_dense_layers == 2 && usual.config.use_expert_bias && usual.config.norm_topk_prob));
  CHECK((usual.config.rope_theta == 1e6f && usual.config.routed_scaling_factor == 1.f));
  CHECK((stated.config.num_dense_layers == 1 && !stated.config.use_expert_bias && !stated.config.norm_topk_prob));
  CHECK((stated.config.routed_scaling_factor == 2.5f && stated.config.num_local_experts == 8));
  CHECK_THAT(refusal(of(R"(,"num_dense_layers":4)")),
             ContainsSubstring("num_dense_layers: expected less than num_hidden_layers 4"));
  CHECK_THAT(refusal(of(R"(,"routed_scaling_factor":0.0)")), ContainsSubstring("routed_scaling_factor: expected"));
}

TEST_CASE("hf_config: a GLM-4.5 states its experts, what turns, norms, biases and layers that draft") {
  const auto of = [](const std::string& fields, const std::string& type = "glm4_moe") {
    return R"({"model_type":")" + type +
           R"(","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("head_dim":16,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5)" +
           fields + "}";
  };
  const auto usual = read(of(R"(,"tie_word_embeddings":false)"));
  const decoder_config& c = usual.config;
  CHECK((c.model_type == architecture::glm4moe && usual.warnings.empty() && usual.draft_layers == 0));
  CHECK((c.num_local_experts == 128 && c.num_experts_per_tok == 8 && c.intermediate_size == 1408));
  CHECK((c.num_dense_layers == 1 && c.dense_intermediate_size == 128 && c.shared_expert_intermediate_size == 1408));
  CHECK((c.rotary_dim == 8 && !c.use_qk_norm && !c.attention_bias && c.use_expert_bias && c.norm_topk_prob));
  CHECK((c.routed_scaling_factor == 1.f && c.rope_theta == 10'000.f));
  const auto stated = read(of(R"(,"n_routed_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32,)"
                              R"("n_shared_experts":2,"first_k_dense_replace":3,"routed_scaling_factor":2.5,)"
                              R"("use_qk_norm":true,"attention_bias":true,"partial_rotary_factor":0.25,"n_group":1,)"
                              R"("topk_group":1,"num_nextn_predict_layers":1,"norm_topk_prob":false)"));
  CHECK((stated.warnings.empty() && stated.draft_layers == 1 && stated.config.num_hidden_layers == 4));
  CHECK((stated.config.num_local_experts == 8 && stated.config.shared_expert_intermediate_size == 64));
  CHECK((stated.config.num_dense_layers == 3 && stated.config.routed_scaling_factor == 2.5f));
  CHECK((stated.config.use_qk_norm && stated.config.attention_bias && stated.config.rotary_dim == 4));
  CHECK(!stated.config.norm_topk_prob);
  CHECK(read(of(R"(,"n_shared_experts":0)")).config.shared_expert_intermediate_size == 0);
  CHECK_THAT(refusal(of(R"(,"n_group":8)")), ContainsSubstring("n_group: expected 1: experts are chosen among all"));
  CHECK_THAT(refusal(of(R"(,"topk_group":4)")), ContainsSubstring("topk_group: expected 1"));
  CHECK_THAT(refusal(of(R"(,"n_shared_experts":4000000000)")), ContainsSubstring("n_shared_experts: expected experts"));
  CHECK_THAT(refusal(of(R"(,"use_qk_norm":true)", "llama")), ContainsSubstring("use_qk_norm: expected none"));
  const auto other = read(of(R"(,"n_routed_experts":8,"num_nextn_predict_layers":1)", "llama"));
  CHECK(other.warnings.size() == 2);
}

TEST_CASE("hf_config: a EuroBERT is a Llama whose tokens attend to each other") {
  const auto of = [](const std::string& fields) {
    return R"({"model_type":"eurobert","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,)"
           R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5)" +
           fields + "}";
  };
  const auto usual = read(of(R"(,"rope_theta":250000,"rope_scaling":null,"attention_bias":false,"mlp_bias":false,)"
                             R"("hidden_dropout":0.0,"pretraining_tp":1,"mask_token_id":2,"is_decoder":false,)"
                             R"("classifier_pooling":"late","tie_word_embeddings":false)"));
  CHECK((usual.config.model_type == architecture::eurobert && usual.config.rope_theta == 250'000.f));
  CHECK((usual.config.num_key_value_heads == 4 && usual.config.hidden_act == activation::silu));
  CHECK(usual.warnings == std::vector<std::string>{});
  CHECK(read(of(R"(,"use_bidirectional_attention":true)")).warnings.empty());
  CHECK_THAT(refusal(of(R"(,"use_bidirectional_attention":false)")),
             ContainsSubstring("use_bidirectional_attention: expected true, found false"));
  CHECK_THAT(refusal(of(R"(,"hidden_act":"gelu")")), ContainsSubstring("hidden_act: expected"));
}

TEST_CASE("hf_config: an ERNIE 4.5 with experts states them by keys that begin with moe_") {
  const auto of = [](const std::string& fields, const std::string& type = "ernie4_5_moe") {
    return R"({"model_type":")" + type +
           R"(","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5)" +
           fields + "}";
  };
  const auto usual = read(of(""));
  const decoder_config& c = usual.config;
  CHECK((c.model_type == architecture::ernie4_5_moe && usual.warnings.empty() && usual.tie_word_embeddings));
  CHECK((c.num_local_experts == 64 && c.num_experts_per_tok == 6 && c.intermediate_size == 1536));
  CHECK((c.num_dense_layers == 1 && c.dense_intermediate_size == 128 && c.shared_expert_intermediate_size == 3072));
  CHECK((c.use_expert_bias && c.norm_topk_prob && c.routed_scaling_factor == 1.f && c.rope_theta == 500'000.f));
  const auto stated =
      read(of(R"(,"moe_num_experts":8,"moe_k":2,"moe_intermediate_size":32,"moe_num_shared_experts":3,)"
              R"("moe_layer_start_index":2,"moe_layer_end_index":3,"moe_layer_interval":1,"moe_norm_min":1e-12,)"
              R"("moe_gate":"topk","moe_capacity":[64,64,64],"moe_use_aux_free":false,"moe_gate_act":"softmax",)"
              R"("moe_norm_gate_logits":true,"multi_token_pred_lambda":0.3,"num_nextn_predict_layers":1,)"
              R"("use_bias":false,"num_experts":8,"num_experts_per_tok":2,"tie_word_embeddings":false)"));
  CHECK(stated.warnings == std::vector<std::string>{});
  CHECK((stated.config.num_local_experts == 8 && stated.config.num_experts_per_tok == 2));
  CHECK((stated.config.num_dense_layers == 2 && stated.config.shared_expert_intermediate_size == 96));
  CHECK((!stated.config.use_expert_bias && stated.draft_layers == 1 && stated.tie_word_embeddings == false));
  CHECK(read(of(R"(,"moe_num_shared_experts":0)")).config.shared_expert_intermediate_size == 0);
  CHECK(read(of(R"(,"moe_layer_start_index":0,"moe_layer_end_index":-1)")).config.num_dense_layers == 0);
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(of(fields)), ContainsSubstring(by));
  };
  refuses(R"(,"moe_layer_interval":2)", "moe_layer_interval: expected 1: experts in all layers");
  refuses(R"(,"moe_layer_end_index":2)", "moe_layer_end_index: expected -1 or the last layer 3");
  refuses(R"(,"moe_layer_start_index":4)", "num_dense_layers: expected less than num_hidden_layers 4");
  refuses(R"(,"moe_layer_start_index":[1,1])", "moe_layer_start_index: expected");
  refuses(R"(,"moe_norm_min":1e-6)", "moe_norm_min: expected 1e-12");
  refuses(R"(,"moe_gate_act":"sigmoid")", "moe_gate_act: expected softmax, found 'sigmoid'");
  refuses(R"(,"moe_norm_gate_logits":false)", "moe_norm_gate_logits: expected true");
  refuses(R"(,"moe_num_experts":0)", "moe_num_experts: expected a number above 0");
  refuses(R"(,"moe_num_experts":8,"num_experts":4)", "expected one value, found 4 and 8");
  refuses(R"(,"moe_num_shared_experts":4000000000)", "moe_num_shared_experts: expected experts");
  const auto other = read(of(R"(,"moe_k":2,"routed_scaling_factor":2.5)"));
  CHECK((other.warnings.size() == 1 && other.config.routed_scaling_factor == 1.f));
  CHECK(read(of(R"(,"moe_k":2,"moe_num_experts":8)", "llama")).warnings.size() == 2);
}

TEST_CASE("hf_config: families put together of others' layers state what they have of their own") {
  const auto of = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5)" +
           fields + "}";
  };
  const auto gemma = read(of("gemma", R"(,"hidden_act":"gelu")"));
  CHECK((gemma.config.hidden_act == activation::gelu_tanh && gemma.tie_word_embeddings && gemma.warnings.empty()));
  CHECK((gemma.config.head_dim == 256 && gemma.config.query_pre_attn_scalar == 0));
  CHECK_THAT(refusal(of("llama", R"(,"hidden_act":"gelu")")), ContainsSubstring("found 'gelu'"));
  CHECK((read(of("arcee", "")).config.hidden_act == activation::relu_squared));
  const auto ernie = read(of("ernie4_5", ""));
  CHECK((ernie.tie_word_embeddings && ernie.config.rope_theta == 500'000.f));

  const auto letters = read(of("exaone4", R"(,"sliding_window":32,"sliding_window_pattern":"LLLG")"));
  CHECK((letters.config.sliding_window == 32 && letters.config.sliding_window_pattern == 4));
  CHECK(letters.warnings.empty());
  CHECK(read(of("exaone4", R"(,"sliding_window":null,"sliding_window_pattern":null)")).config.sliding_window == 0);
  for (const char* word : {R"("LGLL")", R"("LLL")", R"("")", R"("LXG")"})
    CHECK_THAT(refusal(of("exaone4", R"(,"sliding_window":32,"sliding_window_pattern":)" + std::string(word))),
               ContainsSubstring("sliding_window_pattern: expected letters L and one G at the end, or a number"));
  CHECK_THAT(refusal(of("exaone4", R"(,"sliding_window":32,"sliding_window_pattern":"G")")),
             ContainsSubstring("sliding_window: expected none where all layers see all positions, found 32"));

  const std::string yarn = R"(,"rope_parameters":{"rope_type":"yarn","rope_theta":10000,"factor":4,"mscale":1,)"
                           R"("mscale_all_dim":1,"original_max_position_embeddings":128,"llama_4_scaling_beta":0.1})";
  const auto ministral = read(of("ministral3", yarn + R"(,"head_dim":16)"));
  CHECK((ministral.config.max_position_embeddings == 128 && ministral.config.rope_scaling.attention_factor == 1.f));
  CHECK(ministral.warnings.empty());
  CHECK_THAT(refusal(of("llama", yarn)), ContainsSubstring("llama_4_scaling_beta: expected none, found 0.1"));
  CHECK_THAT(refusal(of("ministral3", R"(,"sliding_window":32)")), ContainsSubstring("sliding_window: expected none"));

  const auto glm = read(of("glm4", "")), biased = read(of("glm4", R"(,"attention_bias":true,"head_dim":16)"));
  CHECK((glm.config.rotary_dim == 64 && !glm.config.attention_bias && glm.warnings.empty()));
  CHECK((biased.config.rotary_dim == 8 && biased.config.attention_bias && biased.warnings.empty()));

  const std::string alpha = R"(,"head_dim":128,"rope_scaling":{"type":"dynamic","alpha":1000.0,"factor":1.0,)"
                            R"("beta_fast":32,"beta_slow":1,"mscale":1.0,"mscale_all_dim":1.0)",
                    rest = R"(},"use_qk_norm":true,"use_cla":false,"cla_share_factor":2,"norm_type":"rms",)"
                           R"("attention_head_dim":128,"eod_token_id":3,"dense_list":[64,0])";
  const auto hunyuan = read(of("hunyuan_v1_dense", alpha + rest));
  CHECK((hunyuan.config.rope_theta == 11'158'840.f && hunyuan.config.rope_scaling.type == rope_type::plain));
  CHECK((hunyuan.config.use_qk_norm && hunyuan.config.head_dim == 128));
  CHECK(hunyuan.warnings == std::vector<std::string>{});
  CHECK(read(of("hunyuan_v1_dense", R"(,"attention_head_dim":32)")).config.head_dim == 32);
  CHECK(!read(of("hunyuan_v1_dense", R"(,"use_qk_norm":false)")).config.use_qk_norm);
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(of("hunyuan_v1_dense", fields)), ContainsSubstring(by));
  };
  refuses(R"(,"rope_scaling":{"type":"dynamic","factor":2.0})", "rope_scaling.alpha: expected a number above 0");
  refuses(R"(,"rope_scaling":{"type":"dynamic","alpha":50,"factor":2.0})", "factor: expected 1 beside alpha");
  refuses(R"(,"rope_scaling":{"type":"yarn","factor":2.0})", "rope_type: expected default or dynamic, found 'yarn'");
  refuses(R"(,"use_cla":true)", "use_cla: expected none");
  refuses(R"(,"norm_type":"layer")", "norm_type: expected rms or hf_rms");
  CHECK_THAT(refusal(of("llama", R"(,"rope_scaling":{"type":"dynamic","alpha":50})")),
             ContainsSubstring("rope_scaling.alpha: expected none, found 50"));

  const auto mixture = read(of("qwen2_moe", R"(,"moe_intermediate_size":32,"shared_expert_intermediate_size":96)"));
  CHECK((mixture.config.num_local_experts == 60 && mixture.config.num_experts_per_tok == 4));
  CHECK((mixture.config.intermediate_size == 32 && mixture.config.shared_expert_intermediate_size == 96));
  CHECK((!mixture.config.norm_topk_prob && mixture.warnings.empty()));
}

TEST_CASE("hf_config: decoders with LayerNorms state the form of their layers") {
  const auto of = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1000,"max_position_embeddings":512)" +
           fields + "}";
  };
  const auto cohere = read(of("cohere", R"(,"layer_norm_eps":1e-6,"logit_scale":0.125,"use_qk_norm":false)"));
  CHECK((cohere.config.rms_norm_eps == 1e-6f && cohere.config.logits_scaling == 8.f && cohere.tie_word_embeddings));
  CHECK(cohere.warnings.empty());
  CHECK_THAT(refusal(of("cohere", R"(,"use_qk_norm":true)")), ContainsSubstring("use_qk_norm: expected none"));
  CHECK_THAT(refusal(of("cohere", R"(,"logit_scale":0)")), ContainsSubstring("logit_scale: expected a number above 0"));
  const auto cohere2 = read(of("cohere2", R"(,"sliding_window":32,"layer_switch":4,"rotary_pct":1.0)"));
  CHECK((cohere2.config.sliding_window == 32 && cohere2.config.sliding_window_pattern == 4));
  CHECK((cohere2.config.rms_norm_eps == 1e-5f && cohere2.config.logits_scaling == 16.f && cohere2.warnings.empty()));
  for (const auto& [fields, by] :
       {std::pair{R"(,"use_parallel_block":false)", "use_parallel_block: expected true, found false"},
        {R"(,"use_gated_activation":false)", "use_gated_activation: expected true"},
        {R"(,"order_of_interleaved_layers":"other")", R"(order_of_interleaved_layers: expected "local_attn_first")"},
        {R"(,"sliding_window_pattern":4,"layer_switch":3)", "layer_switch and sliding_window_pattern"},
        {R"(,"rotary_pct":0.5)", "rotary_pct: expected 1"}})
    CHECK_THAT(refusal(of("cohere2", fields)), ContainsSubstring(by));
  const auto starcoder2 = read(of("starcoder2", R"(,"sliding_window":32,"norm_epsilon":1e-6,"use_bias":true)"));
  CHECK((starcoder2.config.sliding_window == 32 && starcoder2.config.sliding_window_pattern == 0));
  CHECK((starcoder2.config.rms_norm_eps == 1e-6f && starcoder2.config.hidden_act == activation::gelu_tanh));
  CHECK(starcoder2.warnings.empty());
  CHECK_THAT(refusal(of("starcoder2", R"(,"use_bias":false)")), ContainsSubstring("use_bias: expected true"));
  CHECK_THAT(refusal(of("starcoder2", R"(,"norm_type":"rms")")),
             ContainsSubstring(R"(norm_type: expected "layer_norm")"));
  const auto stablelm = read(of("stablelm", ""));
  CHECK((stablelm.config.rotary_dim == 4 && !stablelm.config.attention_bias && stablelm.warnings.empty()));
  CHECK(read(of("stablelm", R"(,"use_qkv_bias":true)")).config.attention_bias);
  CHECK_THAT(refusal(of("stablelm", R"(,"use_parallel_residual":true)")), ContainsSubstring("expected false"));
  CHECK_THAT(refusal(of("stablelm", R"(,"qk_layernorm":true)")), ContainsSubstring("qk_layernorm: expected none"));
  CHECK(read(of("nemotron", "")).config.rotary_dim == 8);
  CHECK(read(of("phi", R"(,"hidden_act":"gelu_new")")).config.hidden_act == activation::gelu_tanh);
  const auto neox = read(of("gpt_neox", R"(,"rotary_pct":0.5,"rotary_emb_base":20000)")),
             usual = read(of("gpt_neox", ""));
  CHECK((neox.config.rotary_dim == 8 && neox.config.rope_theta == 20'000.f && neox.warnings.empty()));
  CHECK((usual.config.rotary_dim == 4 && usual.config.hidden_act == activation::gelu));
  CHECK_THAT(refusal(of("gpt_neox", R"(,"use_parallel_residual":false)")), ContainsSubstring("expected true"));
  CHECK_THAT(refusal(of("olmo", R"(,"clip_qkv":8.0)")), ContainsSubstring("clip_qkv: expected none"));
}

TEST_CASE("hf_config: a Falcon and a GPT-2 may leave out sizes") {
  const auto falcon = read(R"({"model_type":"falcon","alibi":false,"multi_query":true})");
  CHECK((falcon.config.hidden_size == 4544 && falcon.config.head_dim == 64 && falcon.config.num_key_value_heads == 1));
  CHECK((falcon.config.intermediate_size == 18'176 && falcon.config.vocab_size == 65'024 && falcon.warnings.empty()));
  for (const auto& [fields, by] : {std::pair{R"("alibi":true)", "alibi: expected none"},
                                   {R"("new_decoder_architecture":true)", "expected false, found true"},
                                   {R"("multi_query":false)", "multi_query: expected true"},
                                   {R"("bias":true)", "bias: expected false"}})
    CHECK_THAT(refusal(R"({"model_type":"falcon",)" + std::string(fields) + "}"), ContainsSubstring(by));
  const auto gpt2 =
      read(R"({"model_type":"gpt2","n_embd":64,"n_head":4,"n_layer":2,"n_positions":128,"n_inner":null})");
  CHECK((gpt2.config.hidden_size == 64 && gpt2.config.intermediate_size == 256 && gpt2.config.head_dim == 16));
  CHECK((gpt2.config.max_position_embeddings == 128 && gpt2.config.vocab_size == 50'257 && gpt2.warnings.empty()));
  CHECK((gpt2.config.no_rope_layer_interval == 1 && gpt2.tie_word_embeddings));
  CHECK_THAT(refusal(R"({"model_type":"gpt2","scale_attn_by_inverse_layer_idx":true})"),
             ContainsSubstring("scale_attn_by_inverse_layer_idx: expected false"));
  CHECK_THAT(refusal(R"({"model_type":"gpt2","n_embd":100,"n_head":3})"), ContainsSubstring("a divisor"));
}

TEST_CASE("hf_config: a Granite with Mamba-2 states its heads, groups and layers") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"granitemoehybrid","hidden_size":256,"intermediate_size":512,"num_hidden_layers":3,)"
           R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5,)"
           R"("shared_intermediate_size":768,"mamba_n_heads":8,"mamba_d_state":128,"mamba_d_conv":4,)"
           R"("layer_types":["mamba","attention","mamba"],)" +
           fields + "}";
  };
  const std::string dense = R"("num_local_experts":0,"num_experts_per_tok":0)";
  const auto plain = read(with(dense + R"(,"mamba_d_head":64,"time_step_limit":[0.0,{"__float__":"Infinity"}])"));
  CHECK(plain.warnings.empty());
  CHECK(plain.config.model_type == architecture::granitehybrid);
  CHECK((plain.config.delta_net == delta_net_config{1, 8, 128, 64} && plain.config.conv_taps == 4));
  CHECK(plain.config.recurrent_layers == layer_set::all_but(3, 1));
  CHECK((plain.config.intermediate_size == 768 && plain.config.no_rope_layer_interval == 1));
  CHECK(read(with(dense + R"(,"position_embedding_type":"rope")")).config.no_rope_layer_interval == 0);
  const auto mixed = read(with(R"("num_local_experts":4,"num_experts_per_tok":2)")).config;
  CHECK((mixed.num_local_experts == 4 && mixed.num_experts_per_tok == 2 && mixed.intermediate_size == 512 &&
         mixed.shared_expert_intermediate_size == 768));
  CHECK_THAT(refusal(with(dense + R"(,"mamba_d_head":32)")),
             ContainsSubstring("mamba_d_head: expected 64 as mamba_expand * hidden_size / mamba_n_heads, found 32"));
  CHECK_THAT(refusal(with(dense + R"(,"mamba_n_groups":3)")),
             ContainsSubstring("mamba_n_heads: expected a multiple of the groups of heads, 3, found 8"));
  CHECK_THAT(refusal(with(dense + R"(,"mamba_conv_bias":false)")), ContainsSubstring("mamba_conv_bias: expected true"));
  CHECK_THAT(refusal(with(dense + R"(,"time_step_limit":[0.001,0.1])")),
             ContainsSubstring("time_step_limit: expected 0 and Infinity"));
  CHECK(read(with(dense + R"(,"mamba_proj_bias":true)")).states_biases);
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

TEST_CASE("hf_config: a Nemotron-H names the kind of each layer") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"nemotron_h","hidden_size":256,"intermediate_size":512,"num_attention_heads":4,)"
           R"("num_key_value_heads":2,"attention_head_dim":80,"vocab_size":1000,"max_position_embeddings":512,)"
           R"("layer_norm_epsilon":1e-5,"mlp_hidden_act":"relu2","mamba_num_heads":8,"mamba_head_dim":12,"n_groups":2,)"
           R"("ssm_state_size":16,"conv_kernel":4,"time_step_limit":[0.0, Infinity],)" +
           fields + "}";
  };
  const auto found = read(with(R"("num_hidden_layers":5,"hybrid_override_pattern":"M-*M-")"));
  CHECK(found.warnings.empty());
  const decoder_config& c = found.config;
  CHECK((c.model_type == architecture::nemotron_h && c.head_dim == 80 && c.hidden_act == activation::relu_squared));
  CHECK((c.delta_net == delta_net_config{2, 8, 16, 12} && c.no_rope_layer_interval == 1));
  CHECK((c.recurrent_layers == layer_set::all_but(5, 1, 2, 4) && c.ffn_layers == layer_set::all_but(5, 0, 2, 3)));
  CHECK(read(with(R"("layers_block_type":["mamba","mlp","attention","mamba","mlp"])")).config == c);
  CHECK(read(with(R"("layer_types":["linear_attention","mlp","full_attention","linear_attention","mlp"])")).config ==
        c);
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"MX*M-")")),
             ContainsSubstring("expected M, *, - and E, a letter a layer, found 'X' for layer 1"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M*-","layers_block_type":["mamba","mlp","attention"])")),
             ContainsSubstring("expected the same kinds of layers"));
  CHECK_THAT(refusal(with(R"("num_hidden_layers":4,"hybrid_override_pattern":"M-*M-")")),
             ContainsSubstring("hybrid_override_pattern: expected 4 layers, found 5"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M*M*")")),
             ContainsSubstring("expected recurrent layers, layers of attention and of FFNs, found 2 recurrent of 4"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M-M-")")),
             ContainsSubstring("found 2 recurrent and 2 of FFNs of 4"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M-*","head_dim":64)")), ContainsSubstring("one value"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M-*","rms_norm_eps":1e-6)")), ContainsSubstring("one value"));
}

TEST_CASE("hf_config: a Nemotron-H with experts states their widths, their number and the router's factor") {
  // As nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 has it.
  const std::string published =
      R"({"architectures":["NemotronHForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":1,)"
      R"("chunk_size":128,"conv_kernel":4,"eos_token_id":2,"expand":2,"head_dim":128,"hidden_dropout":0.0,)"
      R"("hidden_size":2688,"initializer_range":0.02,"intermediate_size":1856,"layer_norm_epsilon":1e-05,)"
      R"("mamba_head_dim":64,"mamba_hidden_act":"silu","mamba_num_heads":64,"mamba_proj_bias":false,)"
      R"("mamba_ssm_cache_dtype":"float32","max_position_embeddings":262144,"mlp_bias":false,)"
      R"("mlp_hidden_act":"relu2","model_type":"nemotron_h","moe_shared_expert_intermediate_size":3712,)"
      R"("n_groups":8,"norm_eps":1e-05,"norm_topk_prob":true,"num_attention_heads":32,"num_experts_per_tok":6,)"
      R"("num_key_value_heads":2,"num_logits_to_keep":1,"pad_token_id":0,"partial_rotary_factor":1.0,)"
      R"("rescale_prenorm_residual":true,"residual_in_fp32":false,"rope_theta":10000,"routed_scaling_factor":2.5,)"
      R"("sliding_window":null,"ssm_state_size":128,"tie_word_embeddings":false,"time_step_floor":0.0001,)"
      R"("time_step_max":0.1,"time_step_min":0.001,"topk_group":1,"torch_dtype":"bfloat16","use_bias":false,)"
      R"("use_cache":true,"use_conv_bias":true,"use_mamba_kernels":true,"vocab_size":131072)";
  const std::string experts = R"(,"moe_intermediate_size":1856,"n_routed_experts":128)",
                    one = R"(,"n_group":1,"n_shared_experts":1)",
                    letters = R"(,"num_hidden_layers":52,"hybrid_override_pattern":)"
                              R"("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME")";
  const auto found = read(published + experts + one + letters + "}");
  CHECK((found.warnings.empty() && found.tie_word_embeddings == false));
  decoder_config named = models::nemotron_3_nano_config;
  named.tie_word_embeddings = found.config.tie_word_embeddings;
  CHECK(found.config == named);

  const auto few = [&](const std::string& pattern) { return R"(,"hybrid_override_pattern":")" + pattern + "\"}"; };
  const decoder_config both = read(published + experts + one + few("M-*E")).config;
  CHECK((both.ffn_layers == layer_set::all_but(4, 0, 2) && both.expert_layers == layer_set::all_but(4, 0, 1, 2)));
  CHECK((both.has_experts(3) && !both.has_experts(1) && both.dense_intermediate_size == 1856));
  CHECK(read(published + experts + one + R"(,"layers_block_type":["mamba","mlp","attention","moe"]})").config == both);
  // Without such a layer its keys say nothing: Nemotron-H 4B states them.
  const auto dense = read(published + experts + one + few("M-*"));
  CHECK((dense.config.num_local_experts == 0 && dense.config.expert_layers.empty() && dense.warnings.empty()));

  CHECK_THAT(refusal(published + experts + R"(,"n_group":2)" + few("M*E")),
             ContainsSubstring("n_group: expected 1, found 2"));
  CHECK_THAT(refusal(published + experts + R"(,"n_shared_experts":2)" + few("M*E")),
             ContainsSubstring("n_shared_experts: expected 1, found 2"));
  CHECK_THAT(refusal(published + experts + R"(,"moe_latent_size":1024)" + few("M*E")),
             ContainsSubstring("moe_latent_size: expected none, found 1024"));
  CHECK_THAT(refusal(published + R"(,"n_routed_experts":128)" + few("M*E")),
             ContainsSubstring("moe_intermediate_size"));
  CHECK_THAT(refusal(published + R"(,"moe_intermediate_size":64,"n_routed_experts":4)" + few("M*E")),
             ContainsSubstring("num_experts_per_tok: expected 1 to 4, found 6"));
}

TEST_CASE("hf_config: ternary layers of a Llama do not become plain ones") {
  const auto with = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":256,"intermediate_size":768,"num_hidden_layers":3,"num_attention_heads":4,)"
           R"("vocab_size":1024,"max_position_embeddings":512,"rms_norm_eps":1e-6,)" +
           fields + "}";
  };
  const std::string bitnet = R"("quantization_config":{"quant_method":"bitnet","linear_class":"autobitlinear"})";
  const auto found = read(with("llama", bitnet));
  CHECK((found.config.ternary && is_ternary(found.config) && found.config.activation_type == dtype::i8));
  CHECK_FALSE(found.scale_divides);
  CHECK(found.warnings.empty());
  CHECK_FALSE(read(with("llama", R"("hidden_act":"silu")")).config.ternary);
  CHECK((read(with("qwen3", bitnet)).config.ternary && read(with("qwen2", bitnet)).config.ternary));
  for (const char* type : {"qwen3_moe", "mixtral", "granite"})
    CHECK_THAT(refusal(with(type, bitnet)), ContainsSubstring("quantization_config.quant_method: expected none"));
  CHECK_THAT(refusal(with("llama", R"("quantization_config":{"quant_method":"gptq"})")),
             ContainsSubstring("expected none for llama, found 'gptq'"));
  CHECK(read(with("llama", R"("quantization_config":{"quant_method":"bitnet"})")).config.projection_norm_eps == 0);
  CHECK(read(with("llama", R"("quantization_config":{"quant_method":"bitnet","use_rms_norm":true})"))
            .config.projection_norm_eps == 1e-6f);
  CHECK(
      read(with("qwen2", R"("quantization_config":{"quant_method":"bitnet","use_rms_norm":true,"rms_norm_eps":1e-5})"))
          .config.projection_norm_eps == 1e-5f);
  CHECK_THAT(refusal(with("llama", R"("quantization_config":{"quant_method":"bitnet","use_rms_norm":1})")),
             ContainsSubstring("use_rms_norm"));
}

TEST_CASE("hf_config: a gpt-oss and a Gemma 2, with transformers' defaults") {
  const auto read_as = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type + R"(","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,)" +
           R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":64,"rms_norm_eps":1e-5,)" +
           R"("max_position_embeddings":128)" + fields + "}";
  };
  const auto oss = read(read_as("gpt_oss", R"(,"num_local_experts":8,"num_experts_per_tok":2,"swiglu_limit":7.0,)"
                                           R"("quantization_config":{"quant_method":"mxfp4"})"))
                       .config;
  CHECK((oss.intermediate_size == 96 && oss.norm_topk_prob && oss.rope_theta == 150'000.f && oss.head_dim == 64));
  CHECK((oss.sliding_window == 128 && oss.sliding_window_pattern == 2 && oss.is_windowed(0) && !oss.is_windowed(1)));
  CHECK_THAT(refusal(read_as("gpt_oss", R"(,"swiglu_limit":6.0)")), ContainsSubstring("swiglu_limit: expected 7"));
  CHECK_THAT(refusal(read_as("gpt_oss", R"(,"experts_per_token":3,"num_experts_per_tok":2)")),
             ContainsSubstring("experts_per_token and num_experts_per_tok: expected one value, found 3 and 2"));
  CHECK_THAT(refusal(read_as("qwen3", R"(,"quantization_config":{"quant_method":"mxfp4"})")),
             ContainsSubstring("quant_method: expected none for qwen3, found 'mxfp4'"));
  const auto gemma = read(read_as("gemma2", R"(,"query_pre_attn_scalar":224)")).config;
  CHECK((gemma.attn_logit_softcapping == 50.f && gemma.final_logit_softcapping == 30.f && gemma.head_dim == 256));
  CHECK((gemma.query_pre_attn_scalar == 224 && gemma.sliding_window == 4096 && gemma.sliding_window_pattern == 2));
  CHECK(read(read_as("gemma2", R"(,"final_logit_softcapping":null)")).config.final_logit_softcapping == 0.f);
  CHECK_THAT(refusal(read_as("gemma2", R"(,"attn_logit_softcapping":-1.0)")),
             ContainsSubstring("attn_logit_softcapping: expected a number above 0"));
}

TEST_CASE("hf_config: encoders state what BERT and Nomic's BERT are made of") {
  const std::string bert =
      R"({"model_type":"bert","hidden_size":64,"num_attention_heads":4,"intermediate_size":128,"num_hidden_layers":3,)"
      R"("vocab_size":100,"type_vocab_size":2,"max_position_embeddings":320,"layer_norm_eps":1e-12,)"
      R"("hidden_act":"gelu")";
  const auto found = read(bert + "}");
  CHECK(found.warnings.empty());
  CHECK((found.config.model_type == architecture::bert && found.config.head_dim == 16 &&
         found.config.num_key_value_heads == 4 && found.config.type_vocab_size == 2 &&
         found.config.rms_norm_eps == 1e-12f && found.config.hidden_act == activation::gelu &&
         found.config.no_rope_layer_interval == 1));
  CHECK_THAT(refusal(bert + R"(,"position_embedding_type":"relative_key"})"),
             ContainsSubstring("position_embedding_type: expected absolute, found"));
  CHECK_THAT(refusal(bert + R"(,"is_decoder":true})"), ContainsSubstring("is_decoder: expected false, found true"));
  for (const char* name : {"xlm-roberta", "roberta"}) {
    std::string own = bert;
    own.replace(own.find(R"("bert")") + 1, 4, name);
    const auto behind = read(own + R"(,"pad_token_id":3})"), usual = read(own + "}");
    CHECK((behind.warnings.empty() && behind.config.model_type == architecture::bert));
    CHECK((behind.position_offset == 4 && behind.config.max_position_embeddings == 316));
    CHECK((usual.position_offset == 2 && usual.config.max_position_embeddings == 318));
    CHECK_THAT(refusal(own + R"(,"pad_token_id":319})"), ContainsSubstring("pad_token_id: expected an id whose"));
  }
  const std::string nomic =
      R"({"model_type":"nomic_bert","n_embd":64,"n_head":4,"n_inner":128,"n_layer":3,"vocab_size":100,)"
      R"("n_positions":8192,"max_trained_positions":2048,"layer_norm_epsilon":1e-12,"rotary_emb_base":1000)";
  const auto other = read(nomic + "}");
  CHECK(other.warnings.empty());
  CHECK((other.config.model_type == architecture::nomic_bert && other.config.max_position_embeddings == 2048 &&
         other.config.rope_theta == 1000.f && other.config.hidden_act == activation::silu &&
         other.config.type_vocab_size == 2 && other.config.no_rope_layer_interval == 0));
  for (const char* key : {"causal", "prenorm", "use_rms_norm", "qkv_proj_bias", "moe_every_n_layers"})
    CHECK_THAT(refusal(nomic + ",\"" + key + "\":" + (key[0] == 'm' ? "2" : "true") + "}"),
               ContainsSubstring(std::string(key) + ": expected none, found"));
  CHECK_THAT(refusal(nomic + R"(,"activation_function":"geglu"})"),
             ContainsSubstring("activation_function: expected swiglu, found"));
}

TEST_CASE("hf_config: a ModernBERT states its windows, its two bases and that it has no biases") {
  const std::string start =
      R"({"model_type":"modernbert","hidden_size":64,"num_attention_heads":4,"num_hidden_layers":7,"vocab_size":100)";
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(start + fields + "}"), ContainsSubstring(by));
  };
  const auto plain = read(start + "}"), stated = read(start + R"(,"global_rope_theta":80000.0,"local_attention":64,)"
                                                              R"("local_rope_theta":5000.0,"norm_eps":1e-6,)"
                                                              R"("global_attn_every_n_layers":2,"norm_bias":false})");
  const decoder_config& c = plain.config;
  CHECK((c.model_type == architecture::modern_bert && plain.warnings.empty() && c.intermediate_size == 1152));
  CHECK((c.rope_theta == 160'000.f && c.rope_local_base_freq == 10'000.f && c.sliding_window == 128));
  CHECK((c.hidden_act == activation::gelu && c.type_vocab_size == 0 && c.max_position_embeddings == 8192));
  for (std::uint32_t layer = 0; layer < 7; ++layer) CHECK(c.is_windowed(layer) == (layer % 3 != 0));
  CHECK((stated.config.rope_theta == 80'000.f && stated.config.rope_local_base_freq == 5'000.f));
  CHECK((stated.config.sliding_window == 64 && stated.config.rms_norm_eps == 1e-6f && stated.warnings.empty()));
  CHECK((!stated.config.is_windowed(2) && stated.config.is_windowed(3)));
  const auto fifth = read(start + R"(,"rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":7000},)"
                                  R"("sliding_attention":{"rope_type":"default","rope_theta":6000}}})");
  CHECK((fifth.config.rope_theta == 7000.f && fifth.config.rope_local_base_freq == 6000.f && fifth.warnings.empty()));
  CHECK(read(start + R"(,"global_attn_every_n_layers":1})").config.sliding_window == 0);
  for (const char* key : {"norm_bias", "attention_bias", "mlp_bias"})
    refuses(",\"" + std::string(key) + "\":true", (std::string(key) + ": expected false, found true").c_str());
  refuses(R"(,"global_attn_every_n_layers":0)", "global_attn_every_n_layers: expected a number from 1");
  refuses(R"(,"hidden_activation":"relu")", "hidden_activation: expected gelu");
  refuses(R"(,"sliding_window":128)", "sliding_window: expected half of local_attention, 64");
  refuses(R"(,"layer_types":["full_attention"])", "layer_types: expected 7 values as num_hidden_layers");
}
