// SPDX-License-Identifier: MIT
// InternLM2 and InternLM2.5: a Llama whose folders have q, k and v as one matrix, in groups by key heads. Source:
// modeling_internlm2.py of internlm/internlm2_5-7b-chat; values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// internlm/internlm2_5-7b-chat, and internlm2-chat-7b
inline constexpr decoder_config internlm25_7b_config{.model_type = architecture::internlm2,
                                                     .hidden_size = 4096,
                                                     .intermediate_size = 14'336,
                                                     .num_hidden_layers = 32,
                                                     .num_attention_heads = 32,
                                                     .num_key_value_heads = 8,
                                                     .head_dim = 128,
                                                     .vocab_size = 92'544,
                                                     .max_position_embeddings = 32'768,
                                                     .rope_theta = 1'000'000.f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = false};
/// internlm/internlm2_5-20b-chat
inline constexpr decoder_config internlm25_20b_config = [] {
  decoder_config c = internlm25_7b_config;
  c.hidden_size = 6144;
  c.intermediate_size = 16'384;
  c.num_hidden_layers = 48;
  c.num_attention_heads = 48;
  return c;
}();
/// internlm/internlm2_5-7b-chat with matrices of codec W.
template <dtype W = dtype::bf16>
struct internlm25_7b : llama<internlm25_7b_config, W> {
  static constexpr std::string_view name = "internlm25_7b";
};
/// internlm/internlm2_5-20b-chat with matrices of codec W.
template <dtype W = dtype::bf16>
struct internlm25_20b : llama<internlm25_20b_config, W> {
  static constexpr std::string_view name = "internlm25_20b";
};

}  // namespace intaglio::models
