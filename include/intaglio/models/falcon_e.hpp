// SPDX-License-Identifier: MIT
// Falcon-E and Falcon3 1.58bit: Llamas whose linear layers are ternary, without norms in front of output projections.
// Source: transformers, models/llama and integrations/bitnet.py; values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// tiiuae/Falcon3-7B-Instruct-1.58bit
inline constexpr decoder_config falcon3_7b_158_config{.model_type = architecture::llama,
                                                      .hidden_size = 3072,
                                                      .intermediate_size = 23'040,
                                                      .num_hidden_layers = 28,
                                                      .num_attention_heads = 12,
                                                      .num_key_value_heads = 4,
                                                      .head_dim = 256,
                                                      .vocab_size = 131'072,
                                                      .max_position_embeddings = 32'768,
                                                      .rope_theta = 1'000'042.f,
                                                      .rms_norm_eps = 1e-6f,
                                                      .hidden_act = activation::silu,
                                                      .tie_word_embeddings = false,
                                                      .activation_type = dtype::i8,
                                                      .ternary = true};
/// The type of a model of this size.  @tparam H of the head
template <dtype H = dtype::f16>
struct falcon3_7b_158 : llama<falcon3_7b_158_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "falcon3_7b_158";
};

/// tiiuae/Falcon3-1B-Instruct-1.58bit
inline constexpr decoder_config falcon3_1b_158_config = [] {
  decoder_config c = falcon3_7b_158_config;
  c.hidden_size = 2048;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 18;
  c.num_attention_heads = 8;
  c.max_position_embeddings = 8192;
  return c;
}();
/// tiiuae/Falcon3-1B-Instruct-1.58bit. @tparam H of embedding and head
template <dtype H = dtype::f16>
struct falcon3_1b_158 : llama<falcon3_1b_158_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "falcon3_1b_158";
};
/// tiiuae/Falcon3-3B-Instruct-1.58bit
inline constexpr decoder_config falcon3_3b_158_config = [] {
  decoder_config c = falcon3_7b_158_config;
  c.intermediate_size = 9216;
  c.num_hidden_layers = 22;
  return c;
}();
/// tiiuae/Falcon3-3B-Instruct-1.58bit. @tparam H of embedding and head
template <dtype H = dtype::f16>
struct falcon3_3b_158 : llama<falcon3_3b_158_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "falcon3_3b_158";
};
/// tiiuae/Falcon3-10B-Instruct-1.58bit
inline constexpr decoder_config falcon3_10b_158_config = [] {
  decoder_config c = falcon3_7b_158_config;
  c.num_hidden_layers = 40;
  return c;
}();
/// tiiuae/Falcon3-10B-Instruct-1.58bit. @tparam H of embedding and head
template <dtype H = dtype::f16>
struct falcon3_10b_158 : llama<falcon3_10b_158_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "falcon3_10b_158";
};
/// tiiuae/Falcon-E-3B-Instruct, and tiiuae/Falcon-E-3B-Base
inline constexpr decoder_config falcon_e_3b_config{.model_type = architecture::llama,
                                                   .hidden_size = 2048,
                                                   .intermediate_size = 13'312,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 16,
                                                   .num_key_value_heads = 2,
                                                   .head_dim = 128,
                                                   .vocab_size = 32'768,
                                                   .max_position_embeddings = 32'768,
                                                   .rope_theta = 1'000'000.f,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = false,
                                                   .activation_type = dtype::i8,
                                                   .ternary = true};
/// tiiuae/Falcon-E-3B-Instruct. @tparam H of embedding and head
template <dtype H = dtype::f16>
struct falcon_e_3b : llama<falcon_e_3b_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "falcon_e_3b";
};
/// tiiuae/Falcon-E-1B-Instruct, and tiiuae/Falcon-E-1B-Base
inline constexpr decoder_config falcon_e_1b_config = [] {
  decoder_config c = falcon_e_3b_config;
  c.intermediate_size = 9216;
  c.num_hidden_layers = 24;
  return c;
}();
/// tiiuae/Falcon-E-1B-Instruct. @tparam H of embedding and head
template <dtype H = dtype::f16>
struct falcon_e_1b : llama<falcon_e_1b_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "falcon_e_1b";
};

}  // namespace intaglio::models
