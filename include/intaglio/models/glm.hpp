// SPDX-License-Identifier: MIT
// GLM-4 of June 2024, which transformers calls glm: a Llama with biases of q, k and v. A part of a head's channels is
// rotated, neighbours together. Source: transformers, models/glm; zai-org/glm-4-9b-chat's modeling_chatglm.py; values
// from the published config.json.
#pragma once

#include "intaglio/models/qwen2.hpp"

namespace intaglio::models {

/// zai-org/glm-4-9b-chat, and -hf
inline constexpr decoder_config glm_4_9b_chat_config{.model_type = architecture::chatglm,
                                                     .hidden_size = 4096,
                                                     .intermediate_size = 13'696,
                                                     .num_hidden_layers = 40,
                                                     .num_attention_heads = 32,
                                                     .num_key_value_heads = 2,
                                                     .head_dim = 128,
                                                     .vocab_size = 151'552,
                                                     .max_position_embeddings = 131'072,
                                                     .rope_theta = 5'000'000.f,
                                                     .rotary_dim = 64,
                                                     .rms_norm_eps = 1.5625e-7f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = false};
/// zai-org/glm-4-9b-chat with matrices of codec W.
template <dtype W = dtype::bf16>
struct glm_4_9b_chat : qwen2<glm_4_9b_chat_config, W> {
  static constexpr std::string_view name = "glm_4_9b_chat";
};

}  // namespace intaglio::models
