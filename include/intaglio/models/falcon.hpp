// SPDX-License-Identifier: MIT
// Falcon 7B: attention and FFN beside each other after one LayerNorm, one head of keys and values, FFNs without a
// gate. The larger Falcons, which have two norms, are not computed. Source: transformers, models/falcon. The sizes are
// not yet compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// tiiuae/falcon-7b, and tiiuae/falcon-7b-instruct
inline constexpr decoder_config falcon_7b_config{.model_type = architecture::falcon,
                                                 .hidden_size = 4544,
                                                 .intermediate_size = 18'176,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 71,
                                                 .num_key_value_heads = 1,
                                                 .head_dim = 64,
                                                 .vocab_size = 65'024,
                                                 .max_position_embeddings = 2048,
                                                 .rope_theta = 10'000.f,
                                                 .rms_norm_eps = 1e-5f,
                                                 .hidden_act = activation::gelu};
/// tiiuae/falcon-7b with matrices of codec W.
template <dtype W = dtype::bf16>
struct falcon_7b : layer_norm_decoder<falcon_7b_config, W> {
  static constexpr std::string_view name = "falcon_7b";
};

}  // namespace intaglio::models
