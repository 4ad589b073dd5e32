// SPDX-License-Identifier: MIT
// OLMo of 2024: a Llama whose LayerNorms have neither weights nor biases. Models that clip q, k and v are not computed.
// Source: Groeneveld et al. 2024; transformers, models/olmo. The sizes are not yet compared with the published
// config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// allenai/OLMo-1B-hf
inline constexpr decoder_config olmo_1b_config{.model_type = architecture::olmo,
                                               .hidden_size = 2048,
                                               .intermediate_size = 8192,
                                               .num_hidden_layers = 16,
                                               .num_attention_heads = 16,
                                               .num_key_value_heads = 16,
                                               .head_dim = 128,
                                               .vocab_size = 50'304,
                                               .max_position_embeddings = 2048,
                                               .rope_theta = 10'000.f,
                                               .rms_norm_eps = 1e-5f,
                                               .hidden_act = activation::silu};
/// allenai/OLMo-7B-hf
inline constexpr decoder_config olmo_7b_config = [] {
  decoder_config c = olmo_1b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 11'008;
  c.num_hidden_layers = 32;
  c.num_attention_heads = c.num_key_value_heads = 32;
  c.tie_word_embeddings = false;
  return c;
}();
/// allenai/OLMo-1B-hf with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo_1b : layer_norm_decoder<olmo_1b_config, W> {
  static constexpr std::string_view name = "olmo_1b";
};
/// allenai/OLMo-7B-hf with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo_7b : layer_norm_decoder<olmo_7b_config, W> {
  static constexpr std::string_view name = "olmo_7b";
};

}  // namespace intaglio::models
