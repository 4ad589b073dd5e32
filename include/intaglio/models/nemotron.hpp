// SPDX-License-Identifier: MIT
// Nemotron and Minitron: LayerNorms whose weights safetensors hold less 1, FFNs with a squared ReLU and without a gate;
// half of the channels of q and k is rotated. Source: transformers, models/nemotron. The sizes are not yet compared
// with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// nvidia/Minitron-4B-Base, and nvidia/Nemotron-Mini-4B-Instruct
inline constexpr decoder_config minitron_4b_config{.model_type = architecture::nemotron,
                                                   .hidden_size = 3072,
                                                   .intermediate_size = 9216,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 24,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 128,
                                                   .vocab_size = 256'000,
                                                   .max_position_embeddings = 4096,
                                                   .rope_theta = 10'000.f,
                                                   .rotary_dim = 64,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::relu_squared,
                                                   .tie_word_embeddings = false};
/// nvidia/Minitron-4B-Base with matrices of codec W.
template <dtype W = dtype::bf16>
struct minitron_4b : layer_norm_decoder<minitron_4b_config, W> {
  static constexpr std::string_view name = "minitron_4b";
};

}  // namespace intaglio::models
