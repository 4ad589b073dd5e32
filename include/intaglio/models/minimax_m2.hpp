// SPDX-License-Identifier: MIT
// MiniMax-M2: an OLMoE with logistic routers, whose choice has a bias, and rotation of half of a head's channels.
// Source: transformers, models/minimax_m2; values from the published config.json.
#pragma once

#include "intaglio/models/olmoe.hpp"

namespace intaglio::models {

/// MiniMaxAI/MiniMax-M2, and -M2.1 and -M2.5
inline constexpr decoder_config minimax_m2_config{.model_type = architecture::minimax_m2,
                                                  .hidden_size = 3072,
                                                  .intermediate_size = 1536,
                                                  .num_hidden_layers = 62,
                                                  .num_attention_heads = 48,
                                                  .num_key_value_heads = 8,
                                                  .head_dim = 128,
                                                  .vocab_size = 200'064,
                                                  .max_position_embeddings = 196'608,
                                                  .rope_theta = 5'000'000.f,
                                                  .rotary_dim = 64,
                                                  .rms_norm_eps = 1e-6f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = false,
                                                  .num_local_experts = 256,
                                                  .num_experts_per_tok = 8,
                                                  .use_expert_bias = true};
/// MiniMaxAI/MiniMax-M2 with matrices of codec W.
template <dtype W = dtype::bf16>
struct minimax_m2 : olmoe<minimax_m2_config, W> {
  static constexpr std::string_view name = "minimax_m2";
};

}  // namespace intaglio::models
