// SPDX-License-Identifier: MIT
// GPT-2: learned positions, LayerNorms and matrices with biases, FFNs without a gate. Source: Radford et al. 2019;
// transformers, models/gpt2. The sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// openai-community/gpt2
inline constexpr decoder_config gpt2_124m_config{.model_type = architecture::gpt2,
                                                 .hidden_size = 768,
                                                 .intermediate_size = 3072,
                                                 .num_hidden_layers = 12,
                                                 .num_attention_heads = 12,
                                                 .num_key_value_heads = 12,
                                                 .head_dim = 64,
                                                 .vocab_size = 50'257,
                                                 .max_position_embeddings = 1024,
                                                 .no_rope_layer_interval = 1,
                                                 .rms_norm_eps = 1e-5f,
                                                 .hidden_act = activation::gelu_tanh};
/// openai-community/gpt2-xl
inline constexpr decoder_config gpt2_15b_config = [] {
  decoder_config c = gpt2_124m_config;
  c.hidden_size = 1600;
  c.intermediate_size = 6400;
  c.num_hidden_layers = 48;
  c.num_attention_heads = c.num_key_value_heads = 25;
  return c;
}();
/// openai-community/gpt2 with matrices of codec W.
template <dtype W = dtype::f16>
struct gpt2_124m : layer_norm_decoder<gpt2_124m_config, W> {
  static constexpr std::string_view name = "gpt2_124m";
};
/// openai-community/gpt2-xl with matrices of codec W.
template <dtype W = dtype::f16>
struct gpt2_15b : layer_norm_decoder<gpt2_15b_config, W> {
  static constexpr std::string_view name = "gpt2_15b";
};

}  // namespace intaglio::models
