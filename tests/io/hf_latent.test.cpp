// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_latent.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "files.hpp"
#include "intaglio/io/hf_config.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

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

/// The published config of deepseek-ai/DeepSeek-V2-Lite with more fields, or with others instead.
std::string lite(const std::string& fields = "", const std::string& query = R"("q_lora_rank":null,)",
                 const std::string& router = R"("n_group":1,"topk_group":1,"topk_method":"greedy",)"
                                             R"("scoring_func":"softmax","norm_topk_prob":false,)"
                                             R"("routed_scaling_factor":1.0,)") {
  return R"({"model_type":"deepseek_v2","architectures":["DeepseekV2ForCausalLM"],"attention_bias":false,)"
         R"("attention_dropout":0.0,"aux_loss_alpha":0.001,"bos_token_id":100000,"eos_token_id":100001,)"
         R"("first_k_dense_replace":1,"hidden_act":"silu","hidden_size":2048,"initializer_range":0.02,)"
         R"("intermediate_size":10944,"kv_lora_rank":512,"max_position_embeddings":163840,)"
         R"("moe_intermediate_size":1408,"moe_layer_freq":1,"n_routed_experts":64,"n_shared_experts":2,)"
         R"("num_attention_heads":16,"num_experts_per_tok":6,"num_hidden_layers":27,"num_key_value_heads":16,)" +
         query + router +
         R"("pretraining_tp":1,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rms_norm_eps":1e-06,)"
         R"("rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":0.707,"mscale_all_dim":0.707,)"
         R"("original_max_position_embeddings":4096,"type":"yarn"},"rope_theta":10000,"seq_aux":true,)"
         R"("tie_word_embeddings":false,"torch_dtype":"bfloat16","use_cache":true,"v_head_dim":128,)"
         R"("vocab_size":102400)" +
         fields + "}";
}
/// config.json of zai-org/GLM-4.7-Flash.
std::string flash(const std::string& fields = "", const std::string& dense = R"("first_k_dense_replace":1,)") {
  return R"({"model_type":"glm4_moe_lite","architectures":["Glm4MoeLiteForCausalLM"],"attention_bias":false,)"
         R"("attention_dropout":0.0,"pad_token_id":154820,"eos_token_id":[154820,154827,154829],"hidden_act":"silu",)"
         R"("hidden_size":2048,"intermediate_size":10240,"max_position_embeddings":202752,)"
         R"("moe_intermediate_size":1536,"topk_method":"noaux_tc","norm_topk_prob":true,"num_attention_heads":20,)"
         R"("n_group":1,"topk_group":1,"n_routed_experts":64,"n_shared_experts":1,"routed_scaling_factor":1.8,)"
         R"("num_experts_per_tok":4,)" +
         dense +
         R"("num_hidden_layers":47,"num_key_value_heads":20,"num_nextn_predict_layers":1,"partial_rotary_factor":1.0,)"
         R"("rms_norm_eps":1e-05,"rope_scaling":null,"rope_theta":1000000,"tie_word_embeddings":false,)"
         R"("dtype":"bfloat16","q_lora_rank":768,"kv_lora_rank":512,"qk_nope_head_dim":192,"qk_rope_head_dim":64,)"
         R"("v_head_dim":256,"vocab_size":154880)" +
         fields + "}";
}
/// config.json of moonshotai/Moonlight-16B-A3B.
std::string moonlight(const std::string& groups = R"("n_group":1,"topk_group":1,)", const std::string& fields = "") {
  return R"({"model_type":"deepseek_v3","attention_bias":false,"aux_loss_alpha":0.001,"bos_token_id":163584,)"
         R"("eos_token_id":163585,"ep_size":1,"first_k_dense_replace":1,"hidden_act":"silu","hidden_size":2048,)"
         R"("intermediate_size":11264,"kv_lora_rank":512,"max_position_embeddings":8192,"moe_intermediate_size":1408,)"
         R"("moe_layer_freq":1,"n_routed_experts":64,"n_shared_experts":2,"norm_topk_prob":true,)"
         R"("num_attention_heads":16,"num_experts_per_tok":6,"num_hidden_layers":27,"num_key_value_heads":16,)"
         R"("num_nextn_predict_layers":0,"pretraining_tp":1,"q_lora_rank":null,"qk_nope_head_dim":128,)"
         R"("qk_rope_head_dim":64,"rms_norm_eps":1e-05,"rope_theta":50000.0,"routed_scaling_factor":2.446,)"
         R"("scoring_func":"sigmoid","seq_aux":true,"tie_word_embeddings":false,"topk_method":"noaux_tc",)" +
         groups + R"("v_head_dim":128,"vocab_size":163840)" + fields + "}";
}

}  // namespace

TEST_CASE("hf_latent: published configs are read without a warning") {
  const io::hf_config one = read(lite());
  const decoder_config& c = one.config;
  CHECK(one.warnings == std::vector<std::string>{});
  CHECK((c.model_type == architecture::deepseek2 && c.head_dim == 192 && c.rotary_dim == 64 && c.v_head_dim == 128));
  CHECK((c.kv_lora_rank == 512 && c.q_lora_rank == 0 && c.num_key_value_heads == 1 && c.num_attention_heads == 16));
  CHECK((c.num_local_experts == 64 && c.num_experts_per_tok == 6 && c.intermediate_size == 1408));
  CHECK((c.num_dense_layers == 1 && c.dense_intermediate_size == 10'944));
  CHECK(c.shared_expert_intermediate_size == 2816);
  CHECK((!c.norm_topk_prob && !c.use_expert_bias && c.routed_scaling_factor == 1.f));
  CHECK(score_of(c) == expert_score::probability);
  CHECK((c.rope_scaling.type == rope_type::yarn && c.rope_scaling.attention_factor == 1.f));
  const double mscale = 1 + 0.0707 * std::log(40.0);
  CHECK(std::fabs(c.attention_multiplier - mscale * mscale / std::sqrt(192.0)) < 1e-8);

  const io::hf_config two = read(flash());
  CHECK(two.warnings == std::vector<std::string>{});
  CHECK((two.config.head_dim == 256 && two.config.q_lora_rank == 768 && two.config.v_head_dim == 256));
  CHECK((two.draft_layers == 1 && two.config.num_hidden_layers == 47 && two.config.attention_multiplier == 0.f));
  CHECK((two.config.use_expert_bias && two.config.norm_topk_prob && two.config.routed_scaling_factor == 1.8f));
  CHECK((score_of(two.config) == expert_score::logistic && two.config.shared_expert_intermediate_size == 1536));
  CHECK((!two.rotated_halves && two.config.rope_scaling.type == rope_type::plain));

  const io::hf_config three = read(moonlight());
  CHECK(three.warnings == std::vector<std::string>{});
  CHECK((three.config.use_expert_bias && three.config.routed_scaling_factor == 2.446f && three.draft_layers == 0));
}

TEST_CASE("hf_latent: transformers' other spellings are read") {
  CHECK(read(flash(R"(,"rope_interleave":false)")).rotated_halves);
  CHECK(read(flash(R"(,"head_dim":64,"qk_head_dim":256)")).warnings.empty());
  std::string kinds = R"(,"mlp_layer_types":["dense","dense")";
  for (int i = 2; i < 47; ++i) kinds += R"(,"sparse")";
  CHECK(read(flash(kinds + "]", "")).config.num_dense_layers == 2);
  CHECK_THAT(refusal(flash(kinds + "]")), ContainsSubstring("first_k_dense_replace: expected 2"));
  CHECK_THAT(refusal(flash(kinds + R"(,"dense"])", "")), ContainsSubstring("expected sparse after the dense layers"));
  CHECK(read(moonlight(R"("n_group":4,"topk_group":4,)")).config.n_group == 0);  // all groups are used
  const auto yarn = read(moonlight(R"("n_group":1,"topk_group":1,)",
                                   R"(,"rope_scaling":{"type":"yarn","factor":40,"mscale":1.0,"mscale_all_dim":0.5,)"
                                   R"("original_max_position_embeddings":4096})"));
  const double one = 1 + 0.1 * std::log(40.0), half = 1 + 0.05 * std::log(40.0);
  CHECK(std::fabs(yarn.config.rope_scaling.attention_factor - one / half) < 1e-6);
  CHECK(std::fabs(yarn.config.attention_multiplier - half * half / std::sqrt(192.0)) < 1e-7);
}

TEST_CASE("hf_latent: experts are chosen in groups") {
  const auto second = [](const std::string& groups) {
    return lite("", R"("q_lora_rank":1536,)",
                groups + R"("scoring_func":"softmax","norm_topk_prob":false,"routed_scaling_factor":16.0,)");
  };
  const auto two = read(second(R"("n_group":8,"topk_group":3,"topk_method":"group_limited_greedy",)"));
  CHECK((two.config.n_group == 8 && two.config.topk_group == 3 && two.config.routed_scaling_factor == 16.f));
  CHECK((two.warnings.empty() && !two.config.use_expert_bias));
  CHECK(read(second(R"("n_group":8,"topk_group":3,"topk_method":"greedy",)")).config.n_group == 0);
  const auto three = read(moonlight(R"("n_group":8,"topk_group":4,)"));
  CHECK((three.config.n_group == 8 && three.config.topk_group == 4 && three.config.use_expert_bias));
  CHECK_THAT(refusal(moonlight(R"("n_group":7,"topk_group":4,)")),
             ContainsSubstring("n_group: expected a number of equal groups, each with at least 2 of 64 experts"));
  CHECK_THAT(refusal(moonlight(R"("n_group":64,"topk_group":4,)")), ContainsSubstring("n_group: expected a number"));
  CHECK_THAT(refusal(moonlight(R"("n_group":4,"topk_group":8,)")),
             ContainsSubstring("topk_group: expected at most n_group, 4, found 8"));
  CHECK_THAT(refusal(moonlight(R"("n_group":32,"topk_group":2,)")),
             ContainsSubstring("topk_group: expected less than n_group 32, groups with at least 6 experts in all"));
}

TEST_CASE("hf_latent: what is not computed is refused by name") {
  CHECK_THAT(refusal(moonlight("")), ContainsSubstring("n_group: expected a natural number"));
  CHECK_THAT(refusal(lite("", "")), ContainsSubstring("q_lora_rank: expected a natural number"));
  CHECK_THAT(refusal(lite(R"(,"qk_head_dim":128)")), ContainsSubstring("qk_head_dim: expected qk_nope_head_dim + "));
  CHECK_THAT(refusal(lite(R"(,"head_dim":128)")), ContainsSubstring("head_dim and qk_rope_head_dim"));
  const auto router = [&](const std::string& keys) { return refusal(lite("", R"("q_lora_rank":null,)", keys)); };
  CHECK_THAT(router(R"("scoring_func":"sigmoid","topk_method":"greedy",)"),
             ContainsSubstring("topk_method: expected noaux_tc, which has a bias"));
  CHECK_THAT(router(R"("scoring_func":"softmax","topk_method":"noaux_tc",)"),
             ContainsSubstring("topk_method: expected greedy or group_limited_greedy"));
  CHECK_THAT(router(R"("scoring_func":"sqrtsoftplus",)"),
             ContainsSubstring("scoring_func: expected softmax or sigmoid"));
  CHECK_THAT(router(R"("norm_topk_prob":true,"routed_scaling_factor":2.0,)"),
             ContainsSubstring("routed_scaling_factor: expected 1 beside scoring_func softmax and norm_topk_prob"));
  CHECK_THAT(refusal(moonlight(R"("n_group":1,"topk_group":1,)",
                               R"(,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,)"
                               R"("high_freq_factor":4,"original_max_position_embeddings":4096})")),
             ContainsSubstring("expected default, linear or yarn beside latent attention"));
  CHECK_THAT(refusal(lite(R"(,"quantization_config":{"quant_method":"fp8"})")), ContainsSubstring("quant_method"));
}

TEST_CASE("hf_latent: keys of latent attention in other families are named") {
  const auto other = read(R"({"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,)"
                          R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,)"
                          R"("rms_norm_eps":1e-5,"kv_lora_rank":512,"scoring_func":"softmax"})");
  CHECK(other.warnings.size() == 2);
}
