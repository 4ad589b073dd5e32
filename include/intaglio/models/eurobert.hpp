// SPDX-License-Identifier: MIT
// EuroBERT: a Llama whose tokens attend to each other. A text is one pass; it gives a vector and no next token. Source:
// transformers, models/eurobert; Boizard et al. 2025; sizes from the authors' converter of checkpoints.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The type of a model.  @shape the last norm's output: [tokens, hidden_size] f32
/// @tparam W of the products' weights  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size)>
struct eurobert {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return llama_body<W>(c, D); }
};

/// EuroBERT/EuroBERT-210m
inline constexpr decoder_config eurobert_210m_config{.model_type = architecture::eurobert,
                                                     .hidden_size = 768,
                                                     .intermediate_size = 3072,
                                                     .num_hidden_layers = 12,
                                                     .num_attention_heads = 12,
                                                     .num_key_value_heads = 12,
                                                     .head_dim = 64,
                                                     .vocab_size = 128'256,
                                                     .max_position_embeddings = 8192,
                                                     .rope_theta = 250'000.f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu};
/// EuroBERT/EuroBERT-610m
inline constexpr decoder_config eurobert_610m_config = [] {
  decoder_config c = eurobert_210m_config;
  c.hidden_size = 1152;
  c.intermediate_size = 4096;
  c.num_hidden_layers = 26;
  c.num_attention_heads = 18;
  c.num_key_value_heads = 6;
  return c;
}();
/// EuroBERT/EuroBERT-2.1B
inline constexpr decoder_config eurobert_21b_config = [] {
  decoder_config c = eurobert_610m_config;
  c.hidden_size = 2304;
  c.intermediate_size = 6144;
  c.num_hidden_layers = 32;
  c.head_dim = 128;
  return c;
}();
/// The type of EuroBERT/EuroBERT-210m.  @tparam W of the products' weights
template <dtype W = dtype::bf16>
struct eurobert_210m : eurobert<eurobert_210m_config, W> {
  static constexpr std::string_view name = "eurobert_210m";
};
/// The type of EuroBERT/EuroBERT-610m.  @tparam W of the products' weights
template <dtype W = dtype::bf16>
struct eurobert_610m : eurobert<eurobert_610m_config, W> {
  static constexpr std::string_view name = "eurobert_610m";
};
/// The type of EuroBERT/EuroBERT-2.1B.  @tparam W of the products' weights
template <dtype W = dtype::bf16>
struct eurobert_21b : eurobert<eurobert_21b_config, W> {
  static constexpr std::string_view name = "eurobert_21b";
};

}  // namespace intaglio::models
