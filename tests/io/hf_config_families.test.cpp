// SPDX-License-Identifier: MIT
// What config.json of decoders with RMS norms and attention in all layers states.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "hf_config_texts.hpp"
#include "intaglio/models/apertus.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace hf_config_texts;

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
  const std::string experts = R"(,"moe_intermediate_size":64,"num_experts":8,"num_experts_per_tok":2)";
  const auto mixture = read(R"({"model_type":"qwen3_vl_moe","vision_config":{},"text_config":{)"
                            R"("model_type":"qwen3_vl_moe_text",)" +
                            sizes + experts + sections + R"("default"}}})");
  CHECK(mixture.config == read(R"({"model_type":"qwen3_moe",)" + sizes + experts + "}").config);
  CHECK(mixture.warnings.empty());
}

TEST_CASE("hf_config: an OLMo 3 has windows, whose rotation is not scaled") {
  const auto with = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":256,"intermediate_size":512,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-6)" +
           fields + "}";
  };
  const std::string yarn = R"("rope_type":"yarn","factor":8,"original_max_position_embeddings":64)";
  const auto third = read(with("olmo3", R"(,"sliding_window":32,"rope_theta":500000,"rope_scaling":{)" + yarn + "}"));
  CHECK((third.config.sliding_window == 32 && third.config.sliding_window_pattern == 4));
  CHECK((third.config.rope().scaling.factor == 8 && third.config.local_rope() == rope_parameters{500'000.f}));
  CHECK(third.warnings.empty());
  const auto kinds = [&](const std::string& window) {
    return with("olmo3", R"(,"sliding_window":32,"rope_parameters":{"full_attention":{"rope_theta":500000,)" + yarn +
                             R"(},"sliding_attention":{)" + window + "}}");
  };
  CHECK(read(kinds(R"("rope_type":"default","rope_theta":500000)")).config == third.config);
  CHECK_THAT(refusal(kinds(R"("rope_type":"default","rope_theta":10000)")),
             ContainsSubstring("expected 500000 as in full_attention, found 10000"));
  CHECK_THAT(refusal(kinds(yarn)), ContainsSubstring("expected default"));
  CHECK_THAT(refusal(with("olmo3", "")), ContainsSubstring("sliding_window: expected a number, found nothing"));
  const auto second = read(with("olmo2", R"(,"sliding_window":null)"));
  CHECK((second.config.sliding_window == 0 && second.config.rope_local_base_freq == 0));
  CHECK_THAT(refusal(with("olmo2", R"(,"sliding_window":32)")), ContainsSubstring("an OLMo 2 has no windows"));
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
  CHECK(read(with("smollm3", R"("no_rope_layer_interval":2,"no_rope_layers":[1,0,1,0])")).warnings.empty());
  CHECK_THAT(refusal(with("smollm3", R"("no_rope_layer_interval":4,"no_rope_layers":[1,0,1,0])")),
             ContainsSubstring("no_rope_layer_interval and no_rope_layers[1]: expected the same layers"));
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
  CHECK(read(of(R"(,"n_group":8,"topk_group":4)")).config.n_group == 8);
  CHECK_THAT(refusal(of(R"(,"topk_group":4)")), ContainsSubstring("topk_group: expected at most n_group, 1"));
  CHECK_THAT(refusal(of(R"(,"n_shared_experts":4000000000)")), ContainsSubstring("n_shared_experts: expected experts"));
  CHECK_THAT(refusal(of(R"(,"use_qk_norm":true)", "llama")), ContainsSubstring("use_qk_norm: expected none"));
  const auto other = read(of(R"(,"n_routed_experts":8,"num_nextn_predict_layers":1)", "llama"));
  CHECK(other.warnings.size() == 2);
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

TEST_CASE("hf_config: a config of Apertus 8B, and an activation that is not its own") {
  const auto with = [](const std::string& act) {
    return R"({"architectures":["ApertusForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":1,)"
           R"("dtype":"bfloat16","eos_token_id":68,"hidden_act":")" +
           act +
           R"(","hidden_dropout":0.0,"hidden_size":4096,"initializer_range":0.02,"intermediate_size":21504,)"
           R"("max_position_embeddings":65536,"mlp_bias":false,"model_type":"apertus","num_attention_heads":32,)"
           R"("num_hidden_layers":32,"num_key_value_heads":8,"pad_token_id":3,"post_norm":false,"qk_norm":true,)"
           R"("rms_norm_eps":1e-05,"rope_scaling":{"factor":8.0,"high_freq_factor":4.0,"low_freq_factor":1.0,)"
           R"("original_max_position_embeddings":8192,"rope_type":"llama3","type":"llama3"},"rope_theta":12000000,)"
           R"("tie_word_embeddings":false,"use_cache":true,"vocab_size":131072})";
  };
  const io::hf_config found = read(with("xielu"));
  CHECK(found.warnings == std::vector<std::string>{});
  decoder_config stated = found.config;
  stated.tie_word_embeddings = found.tie_word_embeddings.value();
  CHECK(io::config_differences(models::apertus_8b_config, stated) == std::vector<std::string>{});
  CHECK_THAT(refusal(with("silu")), ContainsSubstring("hidden_act: expected xielu, found 'silu'"));
  CHECK_THAT(refusal(with("xIELU")), ContainsSubstring("hidden_act: expected xielu, found 'xIELU'"));
  const std::string llama = R"({"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":1,)"
                            R"("num_attention_heads":4,"vocab_size":100,"max_position_embeddings":64,)"
                            R"("rms_norm_eps":1e-5,"hidden_act":"xielu"})";
  CHECK_THAT(refusal(llama), ContainsSubstring("hidden_act: expected relu2, silu or gelu_pytorch_tanh, found 'xielu'"));
}
