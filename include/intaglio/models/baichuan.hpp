// SPDX-License-Identifier: MIT
// Baichuan 7B: a Llama whose folders have q, k and v as one matrix. Source: modeling_baichuan.py of
// baichuan-inc/Baichuan-7B; sizes of the published models.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// baichuan-inc/Baichuan-7B
inline constexpr decoder_config baichuan_7b_config{.model_type = architecture::baichuan,
                                                   .hidden_size = 4096,
                                                   .intermediate_size = 11'008,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 32,
                                                   .head_dim = 128,
                                                   .vocab_size = 64'000,
                                                   .max_position_embeddings = 4096,
                                                   .rope_theta = 10'000.f,
                                                   .rms_norm_eps = 1e-6f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = false};
/// baichuan-inc/Baichuan-7B with matrices of codec W.
template <dtype W = dtype::bf16>
struct baichuan_7b : llama<baichuan_7b_config, W> {
  static constexpr std::string_view name = "baichuan_7b";
};

}  // namespace intaglio::models
