// SPDX-License-Identifier: MIT
// DeepSeekMoE, the first DeepSeek with experts: mixtures with shared experts after a dense layer. An expert's weight
// is its part of a softmax over all experts. Source: modeling_deepseek.py of deepseek-ai/deepseek-moe-16b-base; Dai et
// al. 2024; values from the published config.json.
#pragma once

#include "intaglio/models/ernie4_5_moe.hpp"

namespace intaglio::models {

/// deepseek-ai/deepseek-moe-16b-base, and -chat
inline constexpr decoder_config deepseek_moe_16b_config{.model_type = architecture::deepseek,
                                                        .hidden_size = 2048,
                                                        .intermediate_size = 1408,
                                                        .num_hidden_layers = 28,
                                                        .num_attention_heads = 16,
                                                        .num_key_value_heads = 16,
                                                        .head_dim = 128,
                                                        .vocab_size = 102'400,
                                                        .max_position_embeddings = 4096,
                                                        .rope_theta = 10'000.f,
                                                        .rms_norm_eps = 1e-6f,
                                                        .hidden_act = activation::silu,
                                                        .tie_word_embeddings = false,
                                                        .num_local_experts = 64,
                                                        .num_experts_per_tok = 6,
                                                        .shared_expert_intermediate_size = 2816,
                                                        .norm_topk_prob = false,
                                                        .num_dense_layers = 1,
                                                        .dense_intermediate_size = 10'944};
/// deepseek-ai/deepseek-moe-16b-base with matrices of codec W.
template <dtype W = dtype::bf16>
struct deepseek_moe_16b : ernie4_5_moe<deepseek_moe_16b_config, W> {
  static constexpr std::string_view name = "deepseek_moe_16b";
};

}  // namespace intaglio::models
