// SPDX-License-Identifier: MIT
// StarCoder2: LayerNorms and matrices with biases, FFNs without a gate, a window in all layers. Source: transformers,
// models/starcoder2; Lozhkov et al. 2024. The sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// bigcode/starcoder2-3b
inline constexpr decoder_config starcoder2_3b_config{.model_type = architecture::starcoder2,
                                                     .hidden_size = 3072,
                                                     .intermediate_size = 12'288,
                                                     .num_hidden_layers = 30,
                                                     .num_attention_heads = 24,
                                                     .num_key_value_heads = 2,
                                                     .head_dim = 128,
                                                     .vocab_size = 49'152,
                                                     .max_position_embeddings = 16'384,
                                                     .rope_theta = 999'999.4420358813f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::gelu_tanh,
                                                     .sliding_window = 4096};
/// bigcode/starcoder2-7b
inline constexpr decoder_config starcoder2_7b_config = [] {
  decoder_config c = starcoder2_3b_config;
  c.hidden_size = 4608;
  c.intermediate_size = 18'432;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 36;
  c.num_key_value_heads = 4;
  c.rope_theta = 1'000'000.f;
  return c;
}();
/// bigcode/starcoder2-15b
inline constexpr decoder_config starcoder2_15b_config = [] {
  decoder_config c = starcoder2_7b_config;
  c.hidden_size = 6144;
  c.intermediate_size = 24'576;
  c.num_hidden_layers = 40;
  c.num_attention_heads = 48;
  c.rope_theta = 100'000.f;
  c.tie_word_embeddings = false;
  return c;
}();
/// bigcode/starcoder2-3b with matrices of codec W.
template <dtype W = dtype::bf16>
struct starcoder2_3b : layer_norm_decoder<starcoder2_3b_config, W> {
  static constexpr std::string_view name = "starcoder2_3b";
};
/// bigcode/starcoder2-7b with matrices of codec W.
template <dtype W = dtype::bf16>
struct starcoder2_7b : layer_norm_decoder<starcoder2_7b_config, W> {
  static constexpr std::string_view name = "starcoder2_7b";
};
/// bigcode/starcoder2-15b with matrices of codec W.
template <dtype W = dtype::bf16>
struct starcoder2_15b : layer_norm_decoder<starcoder2_15b_config, W> {
  static constexpr std::string_view name = "starcoder2_15b";
};

}  // namespace intaglio::models
