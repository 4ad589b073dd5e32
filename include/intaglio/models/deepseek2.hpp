// SPDX-License-Identifier: MIT
// DeepSeek-V2 and -V3 and GLM-4.7-Flash: latent attention, and mixtures with shared experts after some dense layers.
// Layers that draft tokens (multi-token prediction) are not computed. Source: transformers, models/deepseek_v2,
// deepseek_v3 and glm4_moe_lite; values from the published config.json.
#pragma once

#include "intaglio/graph/layers/latent_attention.hpp"
#include "intaglio/models/glm4moe.hpp"

namespace intaglio::models {

/// The layers of a model with latent attention, for a model type and for plans that are made at run time. `c` must
/// outlive them.
template <dtype W>
constexpr auto deepseek2_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  return dense_first_graph<W, graph::latent_attention<W>>(c, c.num_attention_heads * c.v_head_dim, head,
                                                          embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct deepseek2 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return deepseek2_graph<W>(c, H, D); }
};

/// deepseek-ai/DeepSeek-V2-Lite. YaRN also multiplies scores, by (1 + 0.1 * 0.707 * log(40))^2.
inline constexpr decoder_config deepseek_v2_lite_config{.model_type = architecture::deepseek2,
                                                        .hidden_size = 2048,
                                                        .intermediate_size = 1408,
                                                        .num_hidden_layers = 27,
                                                        .num_attention_heads = 16,
                                                        .num_key_value_heads = 1,
                                                        .head_dim = 192,
                                                        .vocab_size = 102'400,
                                                        .max_position_embeddings = 163'840,
                                                        .rope_scaling = {.type = rope_type::yarn,
                                                                         .factor = 40.f,
                                                                         .low_freq_factor = 1.f,
                                                                         .high_freq_factor = 32.f,
                                                                         .original_max_position_embeddings = 4096},
                                                        .rotary_dim = 64,
                                                        .rms_norm_eps = 1e-6f,
                                                        .hidden_act = activation::silu,
                                                        .tie_word_embeddings = false,
                                                        .attention_multiplier = 0.11472138f,
                                                        .num_local_experts = 64,
                                                        .num_experts_per_tok = 6,
                                                        .shared_expert_intermediate_size = 2816,
                                                        .norm_topk_prob = false,
                                                        .num_dense_layers = 1,
                                                        .dense_intermediate_size = 10'944,
                                                        .kv_lora_rank = 512,
                                                        .v_head_dim = 128};
/// moonshotai/Moonlight-16B-A3B
inline constexpr decoder_config moonlight_16b_config = [] {
  decoder_config c = deepseek_v2_lite_config;
  c.vocab_size = 163'840;
  c.max_position_embeddings = 8192;
  c.rope_theta = 50'000.f;
  c.rope_scaling = {};
  c.rms_norm_eps = 1e-5f;
  c.attention_multiplier = 0;
  c.norm_topk_prob = true;
  c.routed_scaling_factor = 2.446f;
  c.use_expert_bias = true;
  c.dense_intermediate_size = 11'264;
  return c;
}();
/// zai-org/GLM-4.7-Flash
inline constexpr decoder_config glm_47_flash_config{.model_type = architecture::deepseek2,
                                                    .hidden_size = 2048,
                                                    .intermediate_size = 1536,
                                                    .num_hidden_layers = 47,
                                                    .num_attention_heads = 20,
                                                    .num_key_value_heads = 1,
                                                    .head_dim = 256,
                                                    .vocab_size = 154'880,
                                                    .max_position_embeddings = 202'752,
                                                    .rope_theta = 1'000'000.f,
                                                    .rotary_dim = 64,
                                                    .rms_norm_eps = 1e-5f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = false,
                                                    .num_local_experts = 64,
                                                    .num_experts_per_tok = 4,
                                                    .shared_expert_intermediate_size = 1536,
                                                    .routed_scaling_factor = 1.8f,
                                                    .use_expert_bias = true,
                                                    .num_dense_layers = 1,
                                                    .dense_intermediate_size = 10'240,
                                                    .q_lora_rank = 768,
                                                    .kv_lora_rank = 512,
                                                    .v_head_dim = 256};
/// deepseek-ai/DeepSeek-V2, and -Chat. An expert is chosen in the three of eight groups whose best experts are best.
inline constexpr decoder_config deepseek_v2_config = [] {
  decoder_config c = deepseek_v2_lite_config;
  c.hidden_size = 5120;
  c.intermediate_size = 1536;
  c.num_hidden_layers = 60;
  c.num_attention_heads = 128;
  c.attention_multiplier = 0.13523372f;  // (1 + 0.1 * log(40))^2 / sqrt(192)
  c.num_local_experts = 160;
  c.shared_expert_intermediate_size = 3072;
  c.n_group = 8;
  c.topk_group = 3;
  c.routed_scaling_factor = 16.f;
  c.dense_intermediate_size = 12'288;
  c.q_lora_rank = 1536;
  return c;
}();
/// deepseek-ai/DeepSeek-V3, -V3.1 and -R1
inline constexpr decoder_config deepseek_v3_config = [] {
  decoder_config c = deepseek_v2_config;
  c.hidden_size = 7168;
  c.intermediate_size = 2048;
  c.num_hidden_layers = 61;
  c.vocab_size = 129'280;
  c.num_local_experts = 256;
  c.num_experts_per_tok = 8;
  c.shared_expert_intermediate_size = 2048;
  c.norm_topk_prob = true;
  c.topk_group = 4;
  c.routed_scaling_factor = 2.5f;
  c.use_expert_bias = true;
  c.num_dense_layers = 3;
  c.dense_intermediate_size = 18'432;
  return c;
}();
/// deepseek-ai/DeepSeek-V2 with matrices of codec W.
template <dtype W = dtype::bf16>
struct deepseek_v2 : deepseek2<deepseek_v2_config, W> {
  static constexpr std::string_view name = "deepseek_v2";
};
/// deepseek-ai/DeepSeek-V3 with matrices of codec W.
template <dtype W = dtype::bf16>
struct deepseek_v3 : deepseek2<deepseek_v3_config, W> {
  static constexpr std::string_view name = "deepseek_v3";
};
/// deepseek-ai/DeepSeek-V2-Lite with matrices of codec W.
template <dtype W = dtype::bf16>
struct deepseek_v2_lite : deepseek2<deepseek_v2_lite_config, W> {
  static constexpr std::string_view name = "deepseek_v2_lite";
};
/// moonshotai/Moonlight-16B-A3B with matrices of codec W.
template <dtype W = dtype::bf16>
struct moonlight_16b : deepseek2<moonlight_16b_config, W> {
  static constexpr std::string_view name = "moonlight_16b";
};
/// zai-org/GLM-4.7-Flash with matrices of codec W.
template <dtype W = dtype::bf16>
struct glm_47_flash : deepseek2<glm_47_flash_config, W> {
  static constexpr std::string_view name = "glm_47_flash";
};

}  // namespace intaglio::models
