// SPDX-License-Identifier: MIT
// EmbeddingGemma: a Gemma 3 whose tokens see each other. A text is one pass; it gives a vector and no next token.
// Windowed layers see half of the window before a token and half of it after. Source: transformers, models/gemma3
// (use_bidirectional_attention); EmbeddingGemma 2025; values from the published config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/dense_products.hpp"
#include "intaglio/models/gemma3.hpp"

namespace intaglio::models {

/// The layers of an EmbeddingGemma, for a model type and for plans that are made at run time. The embedding's scale is
/// rounded only where its rows are bf16: the model was published in f32.
template <dtype W>
constexpr auto gemma_embedding_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  const dtype rounded = embedding_type == dtype::bf16 ? dtype::bf16 : dtype::f32;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                     embedding_scale(c.hidden_size, rounded)}
       | repeat(c.num_hidden_layers, every(c.sliding_window_pattern, gemma3_block<W>(c, sliding(c)),
                                              gemma3_block<W>(c, full(c))))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | dense_products<W>{c.hidden_size, c.dense_features};
  // clang-format on
}

/// The type of a model.  @tparam W of the products' weights  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size)>
struct gemma_embedding {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return gemma_embedding_graph<W>(c, D); }
};

/// google/embeddinggemma-300m
inline constexpr decoder_config embeddinggemma_300m_config{.model_type = architecture::gemma_embedding,
                                                           .hidden_size = 768,
                                                           .intermediate_size = 1152,
                                                           .num_hidden_layers = 24,
                                                           .num_attention_heads = 3,
                                                           .num_key_value_heads = 1,
                                                           .head_dim = 256,
                                                           .vocab_size = 262'144,
                                                           .max_position_embeddings = 2048,
                                                           .rope_theta = 1'000'000.f,
                                                           .rms_norm_eps = 1e-6f,
                                                           .hidden_act = activation::gelu_tanh,
                                                           .sliding_window = 512,
                                                           .sliding_window_pattern = 6,
                                                           .rope_local_base_freq = 10'000.f,
                                                           .dense_features = 3072};
/// google/embeddinggemma-300m with matrices of codec W.
template <dtype W = dtype::bf16>
struct embeddinggemma_300m : gemma_embedding<embeddinggemma_300m_config, W> {
  static constexpr std::string_view name = "embeddinggemma_300m";
};

}  // namespace intaglio::models
