// SPDX-License-Identifier: MIT
// Nomic's BERT: an encoder with rotary embedding instead of learned positions and with a gated FFN; only its norms have
// biases. Source: nomic-ai/nomic-bert-2048 (modeling_hf_nomic_bert.py); values from the config.json of each published
// model.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/models/bert.hpp"

namespace intaglio::models {

/// The layers of a Nomic BERT, for a model type and for plans that are made at run time.
template <dtype W>
constexpr auto nomic_bert_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  constexpr dtype A = dtype::f32;
  return encoder_graph(c, embedding_type,
                       self_attention<W, A>{c} | linear<W, A>{"attn_output.weight", c.q_size(), c.hidden_size},
                       gated_ffn<W, A>{c.hidden_size, c.intermediate_size, c.hidden_act} |
                           linear<W, A>{"ffn_down.weight", c.intermediate_size, c.hidden_size});
}

/// The type of a model.  @tparam W of the products' weights  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::f16, dtype D = graph::head_type(W, c.hidden_size)>
struct nomic_bert {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return nomic_bert_graph<W>(c, D); }
};

/// nomic-ai/nomic-embed-text-v1.5, with the number of positions that it was trained with
inline constexpr decoder_config nomic_embed_v15_config{.model_type = architecture::nomic_bert,
                                                       .hidden_size = 768,
                                                       .intermediate_size = 3072,
                                                       .num_hidden_layers = 12,
                                                       .num_attention_heads = 12,
                                                       .num_key_value_heads = 12,
                                                       .head_dim = 64,
                                                       .vocab_size = 30'528,
                                                       .max_position_embeddings = 2048,
                                                       .rope_theta = 1000.f,
                                                       .rms_norm_eps = 1e-12f,
                                                       .hidden_act = activation::silu,
                                                       .type_vocab_size = 2};
/// nomic-ai/nomic-embed-text-v1.5 with matrices of codec W.
template <dtype W = dtype::f16>
struct nomic_embed_v15 : nomic_bert<nomic_embed_v15_config, W> {
  static constexpr std::string_view name = "nomic_embed_v15";
};

}  // namespace intaglio::models
