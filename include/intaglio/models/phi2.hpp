// SPDX-License-Identifier: MIT
// Phi-1, Phi-1.5 and Phi-2: attention and FFN beside each other after one LayerNorm; norms, matrices and the head have
// biases; FFNs have no gate; a part of the channels of q and k is rotated. Source: transformers, models/phi. The sizes
// are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// microsoft/phi-2
inline constexpr decoder_config phi_2_config{.model_type = architecture::phi2,
                                             .hidden_size = 2560,
                                             .intermediate_size = 10'240,
                                             .num_hidden_layers = 32,
                                             .num_attention_heads = 32,
                                             .num_key_value_heads = 32,
                                             .head_dim = 80,
                                             .vocab_size = 51'200,
                                             .max_position_embeddings = 2048,
                                             .rope_theta = 10'000.f,
                                             .rotary_dim = 32,
                                             .rms_norm_eps = 1e-5f,
                                             .hidden_act = activation::gelu_tanh,
                                             .tie_word_embeddings = false};
/// microsoft/phi-1_5
inline constexpr decoder_config phi_15_config = [] {
  decoder_config c = phi_2_config;
  c.hidden_size = 2048;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 24;
  c.head_dim = 64;
  return c;
}();
/// microsoft/phi-2 with matrices of codec W.
template <dtype W = dtype::f16>
struct phi_2 : layer_norm_decoder<phi_2_config, W> {
  static constexpr std::string_view name = "phi_2";
};
/// microsoft/phi-1_5 with matrices of codec W.
template <dtype W = dtype::f16>
struct phi_15 : layer_norm_decoder<phi_15_config, W> {
  static constexpr std::string_view name = "phi_15";
};

}  // namespace intaglio::models
