// SPDX-License-Identifier: MIT
// Gemma 1: a Gemma 2 with norms only in front of its sublayers, without windows and bounds. Source: transformers,
// models/gemma; Gemma report 2024. The sizes are not yet compared with the published config.json.
#pragma once

#include "intaglio/models/gemma3.hpp"

namespace intaglio::models {

/// The layers of a Gemma 1, for a model type and for plans that are made at run time.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto gemma_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   embedding_scale(c.hidden_size, embedding_type)}
       | repeat(c.num_hidden_layers,
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | self_attention<W>{c}
                    | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size})
           | residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps}
                    | FFN<W, graph::input_type<W>>{c.hidden_size, c.intermediate_size, c.hidden_act}
                    | linear<W>{"ffn_down.weight", c.intermediate_size, c.hidden_size}))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam D of the embedding and the head  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size),
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return gemma_graph<W, FFN>(c, D); }
};

/// google/gemma-2b-it
inline constexpr decoder_config gemma_2b_config{.model_type = architecture::gemma,
                                                .hidden_size = 2048,
                                                .intermediate_size = 16'384,
                                                .num_hidden_layers = 18,
                                                .num_attention_heads = 8,
                                                .num_key_value_heads = 1,
                                                .head_dim = 256,
                                                .vocab_size = 256'000,
                                                .max_position_embeddings = 8192,
                                                .rms_norm_eps = 1e-6f,
                                                .hidden_act = activation::gelu_tanh};
/// google/gemma-7b-it
inline constexpr decoder_config gemma_7b_config = [] {
  decoder_config c = gemma_2b_config;
  c.hidden_size = 3072;
  c.intermediate_size = 24'576;
  c.num_hidden_layers = 28;
  c.num_attention_heads = 16;
  c.num_key_value_heads = 16;
  return c;
}();
/// google/gemma-2b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma_2b : gemma<gemma_2b_config, W> {
  static constexpr std::string_view name = "gemma_2b";
};
/// google/gemma-7b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma_7b : gemma<gemma_7b_config, W> {
  static constexpr std::string_view name = "gemma_7b";
};

}  // namespace intaglio::models
