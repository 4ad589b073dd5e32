// SPDX-License-Identifier: MIT
// Command R and Aya (cohere), and Command R7B and Command A (cohere2): LayerNorms without biases, attention and FFN
// beside each other after one norm, a factor of logits. In a cohere2 three of four layers see a window; the fourth
// sees all positions and has no rotation. Source: transformers, models/cohere and models/cohere2. The sizes are not yet
// compared with the published config.json.
#pragma once

#include "intaglio/models/layer_norm_decoder.hpp"

namespace intaglio::models {

/// CohereLabs/c4ai-command-r-v01
inline constexpr decoder_config command_r_35b_config{.model_type = architecture::command_r,
                                                     .hidden_size = 8192,
                                                     .intermediate_size = 22'528,
                                                     .num_hidden_layers = 40,
                                                     .num_attention_heads = 64,
                                                     .num_key_value_heads = 64,
                                                     .head_dim = 128,
                                                     .vocab_size = 256'000,
                                                     .max_position_embeddings = 131'072,
                                                     .rope_theta = 8'000'000.f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu,
                                                     .logits_scaling = 16.f};
/// CohereLabs/c4ai-command-r-08-2024
inline constexpr decoder_config command_r_32b_config = [] {
  decoder_config c = command_r_35b_config;
  c.intermediate_size = 24'576;
  c.num_key_value_heads = 8;
  c.rope_theta = 4'000'000.f;
  return c;
}();
/// CohereLabs/aya-expanse-8b
inline constexpr decoder_config aya_expanse_8b_config = [] {
  decoder_config c = command_r_32b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 14'336;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 32;
  c.max_position_embeddings = 8192;
  c.rope_theta = 10'000.f;
  c.logits_scaling = 8.f;
  return c;
}();
/// CohereLabs/c4ai-command-r7b-12-2024
inline constexpr decoder_config command_r7b_config{.model_type = architecture::cohere2,
                                                   .hidden_size = 4096,
                                                   .intermediate_size = 14'336,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 128,
                                                   .vocab_size = 256'000,
                                                   .max_position_embeddings = 132'096,
                                                   .rope_theta = 50'000.f,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .sliding_window = 4096,
                                                   .sliding_window_pattern = 4,
                                                   .logits_scaling = 4.f};
/// CohereLabs/c4ai-command-a-03-2025
inline constexpr decoder_config command_a_config = [] {
  decoder_config c = command_r7b_config;
  c.hidden_size = 12'288;
  c.intermediate_size = 36'864;
  c.num_hidden_layers = 64;
  c.num_attention_heads = 96;
  c.max_position_embeddings = 131'072;
  return c;
}();
/// CohereLabs/c4ai-command-r-v01 with matrices of codec W.
template <dtype W = dtype::f16>
struct command_r_35b : layer_norm_decoder<command_r_35b_config, W> {
  static constexpr std::string_view name = "command_r_35b";
};
/// CohereLabs/c4ai-command-r-08-2024 with matrices of codec W.
template <dtype W = dtype::f16>
struct command_r_32b : layer_norm_decoder<command_r_32b_config, W> {
  static constexpr std::string_view name = "command_r_32b";
};
/// CohereLabs/aya-expanse-8b with matrices of codec W.
template <dtype W = dtype::f16>
struct aya_expanse_8b : layer_norm_decoder<aya_expanse_8b_config, W> {
  static constexpr std::string_view name = "aya_expanse_8b";
};
/// CohereLabs/c4ai-command-r7b-12-2024 with matrices of codec W.
template <dtype W = dtype::bf16>
struct command_r7b : layer_norm_decoder<command_r7b_config, W> {
  static constexpr std::string_view name = "command_r7b";
};
/// CohereLabs/c4ai-command-a-03-2025 with matrices of codec W.
template <dtype W = dtype::bf16>
struct command_a : layer_norm_decoder<command_a_config, W> {
  static constexpr std::string_view name = "command_a";
};

}  // namespace intaglio::models
