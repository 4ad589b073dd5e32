// SPDX-License-Identifier: MIT
// Granite: a Llama with factors of the embedding, of the scores, of what sublayers add to the stream, and of the
// logits. Source: transformers, models/granite; values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// ibm-granite/granite-3.3-2b-instruct
inline constexpr decoder_config granite_33_2b_config{.model_type = architecture::granite,
                                                     .hidden_size = 2048,
                                                     .intermediate_size = 8192,
                                                     .num_hidden_layers = 40,
                                                     .num_attention_heads = 32,
                                                     .num_key_value_heads = 8,
                                                     .head_dim = 64,
                                                     .vocab_size = 49'159,
                                                     .max_position_embeddings = 131'072,
                                                     .rope_theta = 10'000'000.f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = true,
                                                     .embedding_multiplier = 12.f,
                                                     .attention_multiplier = 0.015625f,
                                                     .residual_multiplier = 0.22f,
                                                     .logits_scaling = 8.f};
/// ibm-granite/granite-3.3-2b-instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct granite_33_2b : llama<granite_33_2b_config, W> {
  static constexpr std::string_view name = "granite_33_2b";
};
/// ibm-granite/granite-3.3-8b-instruct
inline constexpr decoder_config granite_33_8b_config = [] {
  decoder_config c = granite_33_2b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 12'800;
  c.head_dim = 128;
  c.attention_multiplier = 0.0078125f;
  c.logits_scaling = 16.f;
  return c;
}();
/// ibm-granite/granite-3.3-8b-instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct granite_33_8b : llama<granite_33_8b_config, W> {
  static constexpr std::string_view name = "granite_33_8b";
};
/// ibm-granite/granite-4.0-micro; intermediate_size is config.json's shared_intermediate_size
inline constexpr decoder_config granite_4_micro_config = [] {
  decoder_config c = granite_33_2b_config;
  c.hidden_size = 2560;
  c.num_attention_heads = 40;
  c.vocab_size = 100'352;
  c.logits_scaling = 10.f;
  return c;
}();
/// ibm-granite/granite-4.0-micro with matrices of codec W.
template <dtype W = dtype::bf16>
struct granite_4_micro : llama<granite_4_micro_config, W> {
  static constexpr std::string_view name = "granite_4_micro";
};

}  // namespace intaglio::models
