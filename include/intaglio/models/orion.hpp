// SPDX-License-Identifier: MIT
// Orion: a Llama whose norms are LayerNorms with biases. Source: modeling_orion.py of OrionStarAI/Orion-14B-Base. The
// sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// OrionStarAI/Orion-14B-Base, and Orion-14B-Chat
inline constexpr decoder_config orion_14b_config{.model_type = architecture::orion,
                                                 .hidden_size = 5120,
                                                 .intermediate_size = 15'360,
                                                 .num_hidden_layers = 40,
                                                 .num_attention_heads = 40,
                                                 .num_key_value_heads = 40,
                                                 .head_dim = 128,
                                                 .vocab_size = 84'608,
                                                 .max_position_embeddings = 4096,
                                                 .rope_theta = 10'000.f,
                                                 .rms_norm_eps = 1e-5f,
                                                 .hidden_act = activation::silu,
                                                 .tie_word_embeddings = false};
/// OrionStarAI/Orion-14B-Base with matrices of codec W.
template <dtype W = dtype::bf16>
struct orion_14b : layer_norm_decoder<orion_14b_config, W> {
  static constexpr std::string_view name = "orion_14b";
};

}  // namespace intaglio::models
