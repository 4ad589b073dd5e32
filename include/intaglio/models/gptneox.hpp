// SPDX-License-Identifier: MIT
// GPT-NeoX, of which Pythia is made: attention and FFN beside each other, each after a LayerNorm of its own; norms and
// matrices have biases; FFNs have no gate; a quarter of the channels of q and k is rotated. Source: transformers,
// models/gpt_neox. The sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// EleutherAI/pythia-160m
inline constexpr decoder_config pythia_160m_config{.model_type = architecture::gptneox,
                                                   .hidden_size = 768,
                                                   .intermediate_size = 3072,
                                                   .num_hidden_layers = 12,
                                                   .num_attention_heads = 12,
                                                   .num_key_value_heads = 12,
                                                   .head_dim = 64,
                                                   .vocab_size = 50'304,
                                                   .max_position_embeddings = 2048,
                                                   .rope_theta = 10'000.f,
                                                   .rotary_dim = 16,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::gelu,
                                                   .tie_word_embeddings = false};
/// EleutherAI/pythia-1.4b
inline constexpr decoder_config pythia_14b_config = [] {
  decoder_config c = pythia_160m_config;
  c.hidden_size = 2048;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 24;
  c.num_attention_heads = c.num_key_value_heads = 16;
  c.head_dim = 128;
  c.rotary_dim = 32;
  return c;
}();
/// EleutherAI/pythia-6.9b
inline constexpr decoder_config pythia_69b_config = [] {
  decoder_config c = pythia_14b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 16'384;
  c.num_hidden_layers = 32;
  c.num_attention_heads = c.num_key_value_heads = 32;
  c.vocab_size = 50'432;
  return c;
}();
/// EleutherAI/pythia-160m with matrices of codec W.
template <dtype W = dtype::f16>
struct pythia_160m : layer_norm_decoder<pythia_160m_config, W> {
  static constexpr std::string_view name = "pythia_160m";
};
/// EleutherAI/pythia-1.4b with matrices of codec W.
template <dtype W = dtype::f16>
struct pythia_14b : layer_norm_decoder<pythia_14b_config, W> {
  static constexpr std::string_view name = "pythia_14b";
};
/// EleutherAI/pythia-6.9b with matrices of codec W.
template <dtype W = dtype::f16>
struct pythia_69b : layer_norm_decoder<pythia_69b_config, W> {
  static constexpr std::string_view name = "pythia_69b";
};

}  // namespace intaglio::models
