// SPDX-License-Identifier: MIT
// Ministral 3: a Mistral with YaRN whose queries are multiplied by 1 + 0.1 log(1 + floor(position / 16384)). That
// factor is 1 for the first 16,384 positions, and the context ends there in this library. Source: transformers,
// models/ministral3, whose defaults belong to the 8B model.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// mistralai/Ministral-3-8B-Instruct-2512
inline constexpr decoder_config ministral3_8b_config{.model_type = architecture::mistral3,
                                                     .hidden_size = 4096,
                                                     .intermediate_size = 14'336,
                                                     .num_hidden_layers = 34,
                                                     .num_attention_heads = 32,
                                                     .num_key_value_heads = 8,
                                                     .head_dim = 128,
                                                     .vocab_size = 131'072,
                                                     .max_position_embeddings = 16'384,
                                                     .rope_theta = 1'000'000.f,
                                                     .rope_scaling = {rope_type::yarn, 16.f, 1.f, 32.f, 16'384},
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = false};
/// mistralai/Ministral-3-8B-Instruct-2512 with matrices of codec W.
template <dtype W = dtype::bf16>
struct ministral3_8b : llama<ministral3_8b_config, W> {
  static constexpr std::string_view name = "ministral3_8b";
};

}  // namespace intaglio::models
