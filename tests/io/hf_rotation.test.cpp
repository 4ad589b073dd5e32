// SPDX-License-Identifier: MIT
// What is taken for keys of config.json that are not there, and kinds of layers that a family does not have.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "hf_config_texts.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace hf_config_texts;

TEST_CASE("hf_config: a rotation that is not stated is the one that transformers takes") {
  const auto base = [](const char* type, const char* more = "") {
    return read(of_family(type, more)).config.rope_theta;
  };
  CHECK(base("smollm3") == 2e6f);
  CHECK((base("qwen2_vl") == 1e6f && base("qwen2_5_vl") == 1e6f && base("qwen2") == 10'000.f));
  CHECK(base("smollm3", R"("rope_theta":5e6)") == 5e6f);
  CHECK(base("smollm3", R"("rope_parameters":{"rope_type":"default","rope_theta":4e6})") == 4e6f);
  CHECK(base("smollm3", R"("rope_scaling":{"rope_type":"linear","factor":2})") == 2e6f);
  for (const char* type : {"qwen3_vl", "cohere", "exaone"})
    CHECK_THAT(refusal(of_family(type, "")), ContainsSubstring("rope_theta: expected a number: versions of"));
  CHECK(base("qwen3_vl", R"("rope_theta":5e6)") == 5e6f);
  const std::string yarn = R"("rope_theta":150000,"rope_scaling":{"rope_type":"yarn","factor":32,"truncate":false,)"
                           R"("original_max_position_embeddings":4096})";
  const decoder_config oss = read(of_family("gpt_oss", "")).config;
  CHECK((oss.rope_scaling.type == rope_type::yarn && oss.rope_scaling.factor == 32 && !oss.rope_scaling.truncate));
  CHECK(oss == read(of_family("gpt_oss", yarn)).config);
  CHECK(oss == read(of_family("gpt_oss", R"("rope_theta":150000)")).config);
  CHECK(read(of_family("gpt_oss", R"("rope_parameters":{"rope_type":"default"})")).config.rope_scaling.type ==
        rope_type::plain);
  const decoder_config ministral = read(of_family("ministral3", "")).config;
  CHECK((ministral.rope_theta == 1e6f && ministral.rope_scaling.factor == 16));
}

TEST_CASE("hf_config: a family without windows has no layers with one") {
  for (const char* type : {"llama", "qwen2", "qwen3", "smollm3", "granite"}) {
    CAPTURE(type);
    const auto with = [&](const std::string& kinds) { return of_family(type, R"("layer_types":)" + kinds); };
    CHECK(read(with(R"(["full_attention","full_attention","full_attention"])")).warnings.empty());
    CHECK_THAT(refusal(with(R"(["full_attention","sliding_attention","full_attention"])")),
               ContainsSubstring("layer_types[1]: expected full_attention"));
    CHECK_THAT(refusal(with(R"("full_attention")")), ContainsSubstring("layer_types: expected an array"));
  }
  CHECK(read(of_family("exaone4", R"("sliding_window_pattern":3)")).config.sliding_window == 4096);
  CHECK(read(of_family("exaone4", R"("sliding_window":null)")).config.sliding_window == 0);
}

TEST_CASE("hf_config: newer names and constants of known keys are read") {
  CHECK(read(of_family("gpt_oss", R"("swiglu_alpha":1.702)")).warnings.empty());
  CHECK_THAT(refusal(of_family("gpt_oss", R"("swiglu_alpha":1.5)")), ContainsSubstring("swiglu_alpha: expected 1.702"));
  const auto drafts = read(of_family("glm4_moe", R"("num_mtp_layers":1)"));
  CHECK((drafts.draft_layers == 1 && drafts.warnings.empty()));
  CHECK_THAT(refusal(of_family("glm4_moe", R"("num_mtp_layers":1,"num_nextn_predict_layers":2)")),
             ContainsSubstring("num_mtp_layers and num_nextn_predict_layers: expected one value"));
}

TEST_CASE("hf_config: what says how heads turn is one value, wherever it is stated") {
  const auto refused = [](const std::string& fields) { return refusal(of_family("llama", fields)); };
  CHECK(read(of_family("llama", R"("rope_scaling":{"rope_type":"linear","factor":2,"rope_theta":5e5})"))
            .config.rope_theta == 5e5f);
  CHECK_THAT(refused(R"("rope_theta":1e4,"rope_scaling":{"rope_type":"linear","factor":2,"rope_theta":5e5})"),
             ContainsSubstring("rope_theta and rope_scaling.rope_theta: expected one value, found 10000 and 500000"));
  CHECK_THAT(refused(R"("rope_scaling":{"rope_theta":1e4},"rope_parameters":{"rope_theta":5e5})"),
             ContainsSubstring("rope_scaling.rope_theta and rope_parameters.rope_theta: expected one value"));
  // Kinds of layers, which rope_parameters alone has, and only in families whose layers turn in two ways.
  CHECK_THAT(refused(R"("rope_scaling":{"full_attention":{"rope_type":"linear","factor":4}})"),
             ContainsSubstring("rope_scaling.full_attention: expected none"));
  CHECK_THAT(refused(R"("rope_parameters":{"sliding_attention":{"rope_theta":5e5}})"),
             ContainsSubstring("rope_parameters.sliding_attention: expected none"));
  CHECK_THAT(refused(R"("rope_parameters":{"rope_type":"linear","factor":4,"full_attention":{"rope_theta":1e4}})"),
             ContainsSubstring("rope_parameters.rope_type: expected default, found 'linear'"));
  CHECK_THAT(refusal(of_family("gemma3_text", R"("rope_local_base_freq":1e4,)"
                                              R"("rope_parameters":{"sliding_attention":{"rope_theta":2e4}})")),
             ContainsSubstring("rope_local_base_freq and rope_parameters.sliding_attention.rope_theta"));
  // The part of a head that turns.
  const auto phi = [](const std::string& fields) { return of_family("phi3", fields); };
  CHECK(
      read(phi(R"("rope_scaling":{"rope_type":"linear","factor":2,"partial_rotary_factor":0.5})")).config.rotary_dim ==
      8);
  CHECK_THAT(refusal(phi(R"("partial_rotary_factor":0.5,"rope_parameters":{"partial_rotary_factor":0.25})")),
             ContainsSubstring("partial_rotary_factor and rope_parameters.partial_rotary_factor: expected one value"));
}

TEST_CASE("hf_config: a key that another one contradicts, or that only other families have, is not left out") {
  CHECK_THAT(refusal(of_family("qwen2", R"("use_sliding_window":true)")),  // transformers' window is 4096 then
             ContainsSubstring("use_sliding_window: expected false, found true"));
  CHECK(read(of_family("qwen2", R"("use_sliding_window":true,"sliding_window":null)")).config.sliding_window == 0);
  const auto kinds = [](const std::string& each) {
    return of_family("mistral", R"("sliding_window":null,"layer_types":[)" + each + "," + each + "," + each + "]");
  };
  CHECK(read(kinds(R"("full_attention")")).config.sliding_window == 0);
  for (const char* other : {R"("sliding_attention")", R"("linear_attention")"})
    CHECK_THAT(refusal(kinds(other)), ContainsSubstring("layer_types[0]: expected full_attention"));
  CHECK_THAT(refusal(of_family("qwen3", R"("attn_output_gate":true)")),
             ContainsSubstring("attn_output_gate: expected none, found true"));
  CHECK(read(of_family("qwen3", R"("attn_output_gate":false)")).warnings.empty());
  CHECK_THAT(refusal(of_family("qwen3_moe", R"("num_experts":8,"num_local_experts":4)")),
             ContainsSubstring("num_local_experts and num_experts: expected one value, found 4 and 8"));
  CHECK_THAT(refusal(of_family("bert", R"("layer_norm_eps":1e-12,"quantization_config":{"quant_method":"fp8"})")),
             ContainsSubstring("quantization_config.quant_method: expected none for bert, found 'fp8'"));
}

TEST_CASE("hf_config: a type of scaling under its old name and its new one is one type") {
  const auto linear = [](const std::string& object, const std::string& newer, const std::string& older) {
    return of_family("llama",
                     "\"" + object + R"(":{"rope_type":")" + newer + R"(","type":")" + older + R"(","factor":2})");
  };
  for (const std::string object : {"rope_scaling", "rope_parameters"}) {
    CHECK(read(linear(object, "linear", "linear")).config.rope_scaling.type == rope_type::linear);
    for (const auto& [newer, older] : {std::pair{"linear", "yarn"}, {"yarn", "linear"}, {"default", "linear"}}) {
      const std::string keys = object + ".rope_type and " + object + ".type: expected one type, found '";
      CHECK_THAT(refusal(linear(object, newer, older)), ContainsSubstring(keys + newer + "' and '" + older + "'"));
    }
  }
  CHECK_THAT(refusal(of_family("gemma3_text", R"("rope_parameters":{"sliding_attention":)"
                                              R"({"rope_type":"default","type":"linear","rope_theta":1e4}})")),
             ContainsSubstring("rope_parameters.sliding_attention.rope_type and"));
  // Older names of a type.
  const auto images = [](const std::string& types) {
    return of_family("qwen2_vl", R"("rope_scaling":{)" + types + "}");
  };
  CHECK(read(images(R"("rope_type":"default","type":"mrope")")).config == read(images(R"("type":"mrope")")).config);
  CHECK_THAT(refusal(images(R"("rope_type":"yarn","type":"mrope")")), ContainsSubstring("found 'yarn' and 'mrope'"));
}

TEST_CASE("hf_config: rope_scaling and rope_parameters state one scaling, or the file is refused") {
  const std::string yarn = R"({"rope_type":"yarn","factor":4,"original_max_position_embeddings":128)";
  const auto both = [&](const std::string& older, const std::string& newer) {
    return of_family("llama", R"("rope_scaling":)" + yarn + older + R"(},"rope_parameters":)" + yarn + newer + "}");
  };
  CHECK(read(both("", "")).config.rope_scaling.factor == 4);
  CHECK(read(both(R"(,"truncate":false)", R"(,"truncate":false)")).warnings.empty());
  CHECK_THAT(refusal(both("", R"(,"beta_fast":16)")),
             ContainsSubstring("rope_parameters.beta_fast: expected the value of rope_scaling.beta_fast, found 16"));
  CHECK_THAT(
      refusal(both(R"(,"beta_fast":16)", "")),
      ContainsSubstring("rope_parameters.beta_fast: expected the value of rope_scaling.beta_fast, found nothing"));
  CHECK_THAT(refusal(both(R"(,"truncate":true)", R"(,"truncate":false)")),
             ContainsSubstring("rope_parameters.truncate: expected the value of rope_scaling.truncate, found false"));
}

TEST_CASE("hf_config: a rotation beside those of kinds of layers is equal to theirs, or the file is refused") {
  const auto kinds = [](const std::string& outer, const std::string& beside, const std::string& local) {
    return of_family("gemma4_text", outer + R"("rope_parameters":{)" + beside +
                                        R"("full_attention":{"rope_type":"default","rope_theta":1e6},)"
                                        R"("sliding_attention":{"rope_type":"default")" +
                                        local + "}}");
  };
  const std::string base = R"(,"rope_theta":1e4)";
  const auto sound = read(kinds("", "", base));
  CHECK((sound.warnings.empty() && sound.config.rope_theta == 1e6f && sound.config.rope_local_base_freq == 1e4f));
  CHECK(read(kinds(R"("rope_theta":1e6,)", "", base)).config == sound.config);
  CHECK(read(kinds("", R"("rope_theta":1e6,)", base)).config == sound.config);
  CHECK_THAT(refusal(kinds(R"("rope_theta":1e4,)", "", base)),
             ContainsSubstring("rope_theta and rope_parameters.full_attention.rope_theta: expected one value, found "
                               "10000 and 1000000"));
  CHECK_THAT(refusal(kinds("", R"("rope_theta":5e5,)", base)),
             ContainsSubstring("rope_parameters.rope_theta and rope_parameters.full_attention.rope_theta: expected"));
  CHECK_THAT(refusal(kinds("", R"("partial_rotary_factor":0.5,)", base)),
             ContainsSubstring("rope_parameters.partial_rotary_factor: expected none beside the kinds of layers"));
  CHECK_THAT(refusal(kinds(R"("partial_rotary_factor":0.5,)", "", base)),
             ContainsSubstring("partial_rotary_factor: expected none beside the kinds of layers, found 0.5"));
  // A key of Gemma 3, which is named as not used, is not read.
  const auto older = read(kinds(R"("rope_local_base_freq":5e3,)", "", ""));
  CHECK(older.config.rope_local_base_freq == 1e4f);
  REQUIRE(older.warnings.size() == 1);
  CHECK_THAT(older.warnings[0], ContainsSubstring("'rope_local_base_freq' is not used by gemma4_text"));
}

TEST_CASE("hf_config: keys of a rotation that an encoder does not read are named") {
  for (const char* family : {"bert", "modernbert"}) {
    const std::string usual = family == std::string("bert") ? R"("layer_norm_eps":1e-12)" : R"("norm_eps":1e-5)";
    std::string text = of_family(family, usual);
    text.erase(text.find(R"("rms_norm_eps":1e-5,)"), std::string_view(R"("rms_norm_eps":1e-5,)").size());
    CHECK(read(text).warnings.empty());
    text.insert(1, R"("rope_theta":5e5,)");
    const auto found = read(text).warnings;
    REQUIRE(found.size() == 1);
    CHECK_THAT(found[0], ContainsSubstring("'rope_theta' is not used by " + std::string(family)));
  }
  CHECK_THAT(refusal(of_family("modernbert", R"("rope_parameters":{"rope_theta":5e5})")),
             ContainsSubstring("rope_parameters.rope_theta: expected none beside the kinds of layers"));
}

TEST_CASE("hf_config: an interval of windows and a list of the layers' kinds agree") {
  const std::string types = R"("layer_types":["sliding_attention","full_attention","sliding_attention"])";
  const auto with = [&](const std::string& family, const std::string& fields) {
    return of_family(family, R"("sliding_window":64,)" + fields + types);
  };
  CHECK(read(with("gemma3_text", "")).config.sliding_window_pattern == 2);
  for (const std::string key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    CHECK(read(with("gemma3_text", "\"" + key + "\":2,")).config.sliding_window_pattern == 2);
    CHECK_THAT(refusal(with("gemma3_text", "\"" + key + "\":3,")),
               ContainsSubstring(key + " and layer_types[1]: expected one kind of layer, found 3 and full_attention"));
  }
  CHECK_THAT(
      refusal(with("gemma3_text", R"("sliding_window_pattern":2,"_sliding_window_pattern":3,)")),
      ContainsSubstring("_sliding_window_pattern and sliding_window_pattern: expected one value, found 3 and 2"));
  // A family without the key names it, and does not read it.
  const auto oss = read(of_family("gpt_oss", R"("sliding_window":64,"sliding_window_pattern":3)"));
  CHECK(oss.config.sliding_window_pattern == 2);
  REQUIRE(oss.warnings.size() == 1);
  CHECK_THAT(oss.warnings[0], ContainsSubstring("'sliding_window_pattern' is not used by gpt_oss"));
}
