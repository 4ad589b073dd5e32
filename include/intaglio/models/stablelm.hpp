// SPDX-License-Identifier: MIT
// Stable LM: LayerNorms with biases, gated FFNs; a quarter of the channels of q and k is rotated. Models with norms of
// heads, and attention and FFN beside each other (Stable LM 2 12B), are not computed. Source: transformers,
// models/stablelm. The sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// stabilityai/stablelm-3b-4e1t, and stabilityai/stablelm-zephyr-3b
inline constexpr decoder_config stablelm_3b_config{.model_type = architecture::stablelm,
                                                   .hidden_size = 2560,
                                                   .intermediate_size = 6912,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 32,
                                                   .head_dim = 80,
                                                   .vocab_size = 50'304,
                                                   .max_position_embeddings = 4096,
                                                   .rope_theta = 10'000.f,
                                                   .rotary_dim = 20,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = false,
                                                   .attention_bias = false};
/// stabilityai/stablelm-2-1_6b
inline constexpr decoder_config stablelm2_16b_config = [] {
  decoder_config c = stablelm_3b_config;
  c.hidden_size = 2048;
  c.intermediate_size = 5632;
  c.num_hidden_layers = 24;
  c.head_dim = 64;
  c.vocab_size = 100'352;
  c.rotary_dim = 16;
  c.attention_bias = true;
  return c;
}();
/// stabilityai/stablelm-3b-4e1t with matrices of codec W.
template <dtype W = dtype::bf16>
struct stablelm_3b : layer_norm_decoder<stablelm_3b_config, W> {
  static constexpr std::string_view name = "stablelm_3b";
};
/// stabilityai/stablelm-2-1_6b with matrices of codec W.
template <dtype W = dtype::bf16>
struct stablelm2_16b : layer_norm_decoder<stablelm2_16b_config, W> {
  static constexpr std::string_view name = "stablelm2_16b";
};

}  // namespace intaglio::models
