// SPDX-License-Identifier: MIT
// StarCoder and other GPT-BigCodes: a GPT-2 with one head of keys and values. Source: Li et al. 2023; transformers,
// models/gpt_bigcode. The sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// bigcode/starcoder, and bigcode/starcoderbase
inline constexpr decoder_config starcoder_15b_config{.model_type = architecture::starcoder,
                                                     .hidden_size = 6144,
                                                     .intermediate_size = 24'576,
                                                     .num_hidden_layers = 40,
                                                     .num_attention_heads = 48,
                                                     .num_key_value_heads = 1,
                                                     .head_dim = 128,
                                                     .vocab_size = 49'152,
                                                     .max_position_embeddings = 8192,
                                                     .no_rope_layer_interval = 1,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::gelu_tanh};
/// bigcode/starcoderbase-1b
inline constexpr decoder_config starcoderbase_1b_config = [] {
  decoder_config c = starcoder_15b_config;
  c.hidden_size = 2048;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 24;
  c.num_attention_heads = 16;
  return c;
}();
/// bigcode/starcoder with matrices of codec W.
template <dtype W = dtype::bf16>
struct starcoder_15b : layer_norm_decoder<starcoder_15b_config, W> {
  static constexpr std::string_view name = "starcoder_15b";
};
/// bigcode/starcoderbase-1b with matrices of codec W.
template <dtype W = dtype::bf16>
struct starcoderbase_1b : layer_norm_decoder<starcoderbase_1b_config, W> {
  static constexpr std::string_view name = "starcoderbase_1b";
};

}  // namespace intaglio::models
