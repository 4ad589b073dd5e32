// SPDX-License-Identifier: MIT
// Apertus: a Llama with norms of the heads of q and k, whose FFNs have no gate and use xIELU with parameters of each
// layer. Source: transformers, models/apertus; Apertus Technical Report 2025; values from the published config.json.
#pragma once

#include "intaglio/graph/layers/ungated_ffn.hpp"
#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The layers, for a model type and for plans that are made at run time.
template <dtype W>
constexpr auto apertus_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  return llama_graph<W, graph::ungated_ffn, graph::qk_norm::rms>(c, head, embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct apertus {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return apertus_graph<W>(c, H, D); }
};

/// swiss-ai/Apertus-8B-Instruct-2509, and swiss-ai/Apertus-8B-2509
inline constexpr decoder_config apertus_8b_config{.model_type = architecture::apertus,
                                                  .hidden_size = 4096,
                                                  .intermediate_size = 21'504,
                                                  .num_hidden_layers = 32,
                                                  .num_attention_heads = 32,
                                                  .num_key_value_heads = 8,
                                                  .head_dim = 128,
                                                  .vocab_size = 131'072,
                                                  .max_position_embeddings = 65'536,
                                                  .rope_theta = 12e6f,
                                                  .rope_scaling = {rope_type::llama3, 8.f, 1.f, 4.f, 8192},
                                                  .rms_norm_eps = 1e-5f,
                                                  .hidden_act = activation::xielu,
                                                  .tie_word_embeddings = false};
/// swiss-ai/Apertus-70B-Instruct-2509, and swiss-ai/Apertus-70B-2509
inline constexpr decoder_config apertus_70b_config = [] {
  decoder_config c = apertus_8b_config;
  c.hidden_size = 8192;
  c.intermediate_size = 43'008;
  c.num_hidden_layers = 80;
  c.num_attention_heads = 64;
  return c;
}();
/// swiss-ai/Apertus-8B-Instruct-2509 with matrices of codec W.
template <dtype W = dtype::bf16>
struct apertus_8b : apertus<apertus_8b_config, W> {
  static constexpr std::string_view name = "apertus_8b";
};
/// swiss-ai/Apertus-70B-Instruct-2509 with matrices of codec W.
template <dtype W = dtype::bf16>
struct apertus_70b : apertus<apertus_70b_config, W> {
  static constexpr std::string_view name = "apertus_70b";
};

}  // namespace intaglio::models
