// SPDX-License-Identifier: MIT
// BERT, RoBERTa and XLM-RoBERTa: encoders whose tokens see each other, with learned positions, biases, and a LayerNorm
// after each sublayer of a block. They have no head: their output is states, of which embeddings and scores are made.
// Source: Devlin et al. 2019; transformers, models/bert; values from the config.json of each published model.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/layer_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/text_embedding.hpp"
#include "intaglio/graph/layers/ungated_ffn.hpp"

namespace intaglio::models {

/// The layers of an encoder with a LayerNorm after each sublayer of a block.
/// @param attention, ffn the sublayers in front of the norms, without the addition of the stream
constexpr auto encoder_graph(const decoder_config& c, dtype embedding_type, const auto& attention, const auto& ffn) {
  using namespace intaglio::graph;
  const auto norm = [&](std::string_view weight, std::string_view bias) {
    return layer_norm{weight, bias, c.rms_norm_eps};
  };
  // clang-format off
  return text_embedding{c, embedding_type}
       | norm("token_embd_norm.weight", "token_embd_norm.bias")
       | repeat(c.num_hidden_layers,
             residual(attention)
           | norm("attn_output_norm.weight", "attn_output_norm.bias")
           | residual(ffn)
           | norm("layer_output_norm.weight", "layer_output_norm.bias"));
  // clang-format on
}

/// The layers of a BERT, for a model type and for plans that are made at run time.
template <dtype W>
constexpr auto bert_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  constexpr dtype A = dtype::f32;
  return encoder_graph(c, embedding_type,
                       self_attention<W, A, qk_norm::none, qkv_bias::added>{c} |
                           linear<W, A>{"attn_output.weight", c.q_size(), c.hidden_size, "attn_output.bias"},
                       ungated_ffn<W, A>{c.hidden_size, c.intermediate_size, c.hidden_act, "ffn_up.bias"} |
                           linear<W, A>{"ffn_down.weight", c.intermediate_size, c.hidden_size, "ffn_down.bias"});
}

/// The type of a model.  @tparam W of the products' weights  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::f16, dtype D = graph::head_type(W, c.hidden_size)>
struct bert {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return bert_graph<W>(c, D); }
};

/// BAAI/bge-base-en-v1.5, and google-bert/bert-base-uncased
inline constexpr decoder_config bge_base_config{.model_type = architecture::bert,
                                                .hidden_size = 768,
                                                .intermediate_size = 3072,
                                                .num_hidden_layers = 12,
                                                .num_attention_heads = 12,
                                                .num_key_value_heads = 12,
                                                .head_dim = 64,
                                                .vocab_size = 30'522,
                                                .max_position_embeddings = 512,
                                                .no_rope_layer_interval = 1,
                                                .rms_norm_eps = 1e-12f,
                                                .hidden_act = activation::gelu,
                                                .type_vocab_size = 2};
/// BAAI/bge-small-en-v1.5
inline constexpr decoder_config bge_small_config = [] {
  decoder_config c = bge_base_config;
  c.hidden_size = 384;
  c.intermediate_size = 1536;
  c.head_dim = 32;
  return c;
}();
/// BAAI/bge-large-en-v1.5
inline constexpr decoder_config bge_large_config = [] {
  decoder_config c = bge_base_config;
  c.hidden_size = 1024;
  c.intermediate_size = 4096;
  c.num_hidden_layers = 24;
  c.num_attention_heads = c.num_key_value_heads = 16;
  return c;
}();
/// sentence-transformers/all-MiniLM-L6-v2, and cross-encoder/ms-marco-MiniLM-L6-v2
inline constexpr decoder_config minilm_l6_config = [] {
  decoder_config c = bge_small_config;
  c.num_hidden_layers = 6;
  return c;
}();
/// FacebookAI/xlm-roberta-base without the rows of positions in front of a text's first token:
/// intfloat/multilingual-e5-base, BAAI/bge-reranker-base
inline constexpr decoder_config xlm_roberta_base_config = [] {
  decoder_config c = bge_base_config;
  c.vocab_size = 250'002;
  c.rms_norm_eps = 1e-5f;
  c.type_vocab_size = 1;
  return c;
}();
/// intfloat/multilingual-e5-large
inline constexpr decoder_config xlm_roberta_large_config = [] {
  decoder_config c = xlm_roberta_base_config;
  c.hidden_size = 1024;
  c.intermediate_size = 4096;
  c.num_hidden_layers = 24;
  c.num_attention_heads = c.num_key_value_heads = 16;
  return c;
}();
/// BAAI/bge-m3, BAAI/bge-reranker-v2-m3
inline constexpr decoder_config bge_m3_config = [] {
  decoder_config c = xlm_roberta_large_config;
  c.max_position_embeddings = 8192;
  return c;
}();
/// intfloat/multilingual-e5-small, which is a BERT
inline constexpr decoder_config multilingual_e5_small_config = [] {
  decoder_config c = bge_small_config;
  c.vocab_size = 250'037;
  return c;
}();
/// FacebookAI/roberta-base, without the rows of positions in front of a text's first token
inline constexpr decoder_config roberta_base_config = [] {
  decoder_config c = xlm_roberta_base_config;
  c.vocab_size = 50'265;
  return c;
}();
/// sentence-transformers/all-distilroberta-v1
inline constexpr decoder_config distilroberta_config = [] {
  decoder_config c = roberta_base_config;
  c.num_hidden_layers = 6;
  return c;
}();
/// BAAI/bge-small-en-v1.5 with matrices of codec W.
template <dtype W = dtype::f16>
struct bge_small : bert<bge_small_config, W> {
  static constexpr std::string_view name = "bge_small";
};
/// BAAI/bge-base-en-v1.5 with matrices of codec W.
template <dtype W = dtype::f16>
struct bge_base : bert<bge_base_config, W> {
  static constexpr std::string_view name = "bge_base";
};
/// BAAI/bge-large-en-v1.5 with matrices of codec W.
template <dtype W = dtype::f16>
struct bge_large : bert<bge_large_config, W> {
  static constexpr std::string_view name = "bge_large";
};
/// sentence-transformers/all-MiniLM-L6-v2 with matrices of codec W.
template <dtype W = dtype::f16>
struct minilm_l6 : bert<minilm_l6_config, W> {
  static constexpr std::string_view name = "minilm_l6";
};
/// BAAI/bge-m3 with matrices of codec W.
template <dtype W = dtype::f16>
struct bge_m3 : bert<bge_m3_config, W> {
  static constexpr std::string_view name = "bge_m3";
};
/// intfloat/multilingual-e5-small with matrices of codec W.
template <dtype W = dtype::f16>
struct multilingual_e5_small : bert<multilingual_e5_small_config, W> {
  static constexpr std::string_view name = "multilingual_e5_small";
};
/// FacebookAI/xlm-roberta-base with matrices of codec W.
template <dtype W = dtype::f16>
struct multilingual_e5_base : bert<xlm_roberta_base_config, W> {
  static constexpr std::string_view name = "multilingual_e5_base";
};
/// intfloat/multilingual-e5-large with matrices of codec W.
template <dtype W = dtype::f16>
struct multilingual_e5_large : bert<xlm_roberta_large_config, W> {
  static constexpr std::string_view name = "multilingual_e5_large";
};
/// FacebookAI/roberta-base with matrices of codec W.
template <dtype W = dtype::f16>
struct roberta_base : bert<roberta_base_config, W> {
  static constexpr std::string_view name = "roberta_base";
};
/// sentence-transformers/all-distilroberta-v1 with matrices of codec W.
template <dtype W = dtype::f16>
struct all_distilroberta : bert<distilroberta_config, W> {
  static constexpr std::string_view name = "all_distilroberta";
};

}  // namespace intaglio::models
