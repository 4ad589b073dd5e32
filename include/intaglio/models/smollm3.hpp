// SPDX-License-Identifier: MIT
// SmolLM3: a Llama in which every fourth layer has no rotation of q and k. Source: transformers, models/smollm3; Yang
// et al. 2025 (RNoPE); values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// HuggingFaceTB/SmolLM3-3B
inline constexpr decoder_config smollm3_3b_config{.model_type = architecture::smollm3,
                                                  .hidden_size = 2048,
                                                  .intermediate_size = 11'008,
                                                  .num_hidden_layers = 36,
                                                  .num_attention_heads = 16,
                                                  .num_key_value_heads = 4,
                                                  .head_dim = 128,
                                                  .vocab_size = 128'256,
                                                  .max_position_embeddings = 65'536,
                                                  .rope_theta = 5'000'000.f,
                                                  .no_rope_layer_interval = 4,
                                                  .rms_norm_eps = 1e-6f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = true};
/// HuggingFaceTB/SmolLM3-3B with matrices of codec W.
template <dtype W = dtype::bf16>
struct smollm3_3b : llama<smollm3_3b_config, W> {
  static constexpr std::string_view name = "smollm3_3b";
};

}  // namespace intaglio::models
