// SPDX-License-Identifier: MIT
// Ling: DeepSeekMoE's mixtures, in all layers. Ling 2.0 is a dots.llm1 in which half of a head's channels are rotated
// and experts are chosen in the best groups. Layers that draft tokens (multi-token prediction) are not computed.
// Source: the modeling files of inclusionAI/Ling-lite-1.5 and Ling-mini-2.0; values from the published config.json.
#pragma once

#include "intaglio/models/dots1.hpp"
#include "intaglio/models/ernie4_5_moe.hpp"

namespace intaglio::models {

/// inclusionAI/Ling-lite-1.5
inline constexpr decoder_config ling_lite_15_config{.model_type = architecture::bailingmoe,
                                                    .hidden_size = 2048,
                                                    .intermediate_size = 1408,
                                                    .num_hidden_layers = 28,
                                                    .num_attention_heads = 16,
                                                    .num_key_value_heads = 4,
                                                    .head_dim = 128,
                                                    .vocab_size = 126'464,
                                                    .max_position_embeddings = 32'768,
                                                    .rope_theta = 600'000.f,
                                                    .rms_norm_eps = 1e-6f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = false,
                                                    .num_local_experts = 64,
                                                    .num_experts_per_tok = 6,
                                                    .shared_expert_intermediate_size = 2816};
/// inclusionAI/Ling-mini-2.0
inline constexpr decoder_config ling_mini_20_config{.model_type = architecture::bailingmoe2,
                                                    .hidden_size = 2048,
                                                    .intermediate_size = 512,
                                                    .num_hidden_layers = 20,
                                                    .num_attention_heads = 16,
                                                    .num_key_value_heads = 4,
                                                    .head_dim = 128,
                                                    .vocab_size = 157'184,
                                                    .max_position_embeddings = 32'768,
                                                    .rope_theta = 600'000.f,
                                                    .rotary_dim = 64,
                                                    .rms_norm_eps = 1e-6f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = false,
                                                    .num_local_experts = 256,
                                                    .num_experts_per_tok = 8,
                                                    .shared_expert_intermediate_size = 512,
                                                    .routed_scaling_factor = 2.5f,
                                                    .use_expert_bias = true,
                                                    .n_group = 8,
                                                    .topk_group = 4,
                                                    .num_dense_layers = 1,
                                                    .dense_intermediate_size = 5120};
template <dtype W = dtype::bf16>
struct ling_lite_15 : ernie4_5_moe<ling_lite_15_config, W> {  ///< inclusionAI/Ling-lite-1.5's graph
  static constexpr std::string_view name = "ling_lite_15";
};
template <dtype W = dtype::bf16>
struct ling_mini_20 : dots1<ling_mini_20_config, W> {  ///< inclusionAI/Ling-mini-2.0's graph
  static constexpr std::string_view name = "ling_mini_20";
};

}  // namespace intaglio::models
