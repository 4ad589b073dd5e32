// SPDX-License-Identifier: MIT
// XVERSE: a Llama with a vocabulary of its own. Source: modeling_xverse.py of xverse/XVERSE-7B; sizes of the
// published models.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// xverse/XVERSE-7B
inline constexpr decoder_config xverse_7b_config{.model_type = architecture::xverse,
                                                 .hidden_size = 4096,
                                                 .intermediate_size = 11'008,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 32,
                                                 .num_key_value_heads = 32,
                                                 .head_dim = 128,
                                                 .vocab_size = 100'534,
                                                 .max_position_embeddings = 8192,
                                                 .rope_theta = 10'000.f,
                                                 .rms_norm_eps = 1e-6f,
                                                 .hidden_act = activation::silu,
                                                 .tie_word_embeddings = false};
/// xverse/XVERSE-13B
inline constexpr decoder_config xverse_13b_config = [] {
  decoder_config c = xverse_7b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 13'824;
  c.num_hidden_layers = 40;
  c.num_attention_heads = 40;
  c.num_key_value_heads = 40;
  c.vocab_size = 100'278;
  return c;
}();
/// xverse/XVERSE-7B with matrices of codec W.
template <dtype W = dtype::bf16>
struct xverse_7b : llama<xverse_7b_config, W> {
  static constexpr std::string_view name = "xverse_7b";
};
/// xverse/XVERSE-13B with matrices of codec W.
template <dtype W = dtype::bf16>
struct xverse_13b : llama<xverse_13b_config, W> {
  static constexpr std::string_view name = "xverse_13b";
};

}  // namespace intaglio::models
