// SPDX-License-Identifier: MIT
// EXAONE 3.0 and 3.5: a Llama whose tensors have names of their own (io/renamed_tensors.hpp). Source:
// modeling_exaone.py of LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct; EXAONE 3.5 report 2024, table of sizes.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// LGAI-EXAONE/EXAONE-3.0-7.8B-Instruct
inline constexpr decoder_config exaone3_78b_config{.model_type = architecture::exaone,
                                                   .hidden_size = 4096,
                                                   .intermediate_size = 14'336,
                                                   .num_hidden_layers = 32,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 128,
                                                   .vocab_size = 102'400,
                                                   .max_position_embeddings = 4096,
                                                   .rope_theta = 500'000.f,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = false};
/// LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct, and EXAONE-Deep-7.8B
inline constexpr decoder_config exaone35_78b_config = [] {
  decoder_config c = exaone3_78b_config;
  c.max_position_embeddings = 32'768;
  c.rope_theta = 1'000'000.f;
  c.rope_scaling = {rope_type::llama3, 8.f, 1.f, 4.f, 8192};
  return c;
}();
/// LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct, and EXAONE-Deep-2.4B
inline constexpr decoder_config exaone35_24b_config = [] {
  decoder_config c = exaone35_78b_config;
  c.hidden_size = 2560;
  c.intermediate_size = 7168;
  c.num_hidden_layers = 30;
  c.head_dim = 80;
  c.tie_word_embeddings = true;
  return c;
}();
/// LGAI-EXAONE/EXAONE-3.5-32B-Instruct, and EXAONE-Deep-32B
inline constexpr decoder_config exaone35_32b_config = [] {
  decoder_config c = exaone35_78b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 27'392;
  c.num_hidden_layers = 64;
  c.num_attention_heads = 40;
  return c;
}();
/// LGAI-EXAONE/EXAONE-3.0-7.8B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct exaone3_78b : llama<exaone3_78b_config, W> {
  static constexpr std::string_view name = "exaone3_78b";
};
/// LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct exaone35_24b : llama<exaone35_24b_config, W> {
  static constexpr std::string_view name = "exaone35_24b";
};
/// LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct exaone35_78b : llama<exaone35_78b_config, W> {
  static constexpr std::string_view name = "exaone35_78b";
};
/// LGAI-EXAONE/EXAONE-3.5-32B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct exaone35_32b : llama<exaone35_32b_config, W> {
  static constexpr std::string_view name = "exaone35_32b";
};

}  // namespace intaglio::models
