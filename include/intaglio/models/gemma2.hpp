// SPDX-License-Identifier: MIT
// Gemma 2: a Gemma 3 without norms of q and k, with bounds of scores and logits, and with a window in every other
// layer. Source: transformers, models/gemma2; Gemma 2 Technical Report 2024; values from the published config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/models/gemma3.hpp"

namespace intaglio::models {

/// The layers of a Gemma 2, for a model type and for plans that are made at run time.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto gemma2_graph(const decoder_config& c, dtype embedding_type) {
  return gemma3_graph<W, FFN, graph::qk_norm::none>(c, embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam D of the embedding and the head  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size),
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma2 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return gemma2_graph<W, FFN>(c, D); }
};

/// google/gemma-2-2b-it
inline constexpr decoder_config gemma2_2b_config{.model_type = architecture::gemma2,
                                                 .hidden_size = 2304,
                                                 .intermediate_size = 9216,
                                                 .num_hidden_layers = 26,
                                                 .num_attention_heads = 8,
                                                 .num_key_value_heads = 4,
                                                 .head_dim = 256,
                                                 .vocab_size = 256'000,
                                                 .max_position_embeddings = 8192,
                                                 .rms_norm_eps = 1e-6f,
                                                 .hidden_act = activation::gelu_tanh,
                                                 .sliding_window = 4096,
                                                 .sliding_window_pattern = 2,
                                                 .attn_logit_softcapping = 50.f,
                                                 .final_logit_softcapping = 30.f};
/// google/gemma-2-2b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma2_2b : gemma2<gemma2_2b_config, W> {
  static constexpr std::string_view name = "gemma2_2b";
};
/// google/gemma-2-9b-it
inline constexpr decoder_config gemma2_9b_config = [] {
  decoder_config c = gemma2_2b_config;
  c.hidden_size = 3584;
  c.intermediate_size = 14'336;
  c.num_hidden_layers = 42;
  c.num_attention_heads = 16;
  c.num_key_value_heads = 8;
  return c;
}();
/// google/gemma-2-9b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma2_9b : gemma2<gemma2_9b_config, W> {
  static constexpr std::string_view name = "gemma2_9b";
};
/// google/gemma-2-27b-it
inline constexpr decoder_config gemma2_27b_config = [] {
  decoder_config c = gemma2_2b_config;
  c.hidden_size = 4608;
  c.intermediate_size = 36'864;
  c.num_hidden_layers = 46;
  c.num_attention_heads = 32;
  c.num_key_value_heads = 16;
  c.head_dim = 128;
  c.query_pre_attn_scalar = 144;
  return c;
}();
/// google/gemma-2-27b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma2_27b : gemma2<gemma2_27b_config, W> {
  static constexpr std::string_view name = "gemma2_27b";
};

}  // namespace intaglio::models
