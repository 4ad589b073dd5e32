// SPDX-License-Identifier: MIT
// LFM2: gated short convolutions in most layers, and grouped-query attention with norms of the heads of q and k in
// some. Source: transformers, models/lfm2; values from the config.json of each published model.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/short_conv.hpp"

namespace intaglio::models {

/// The layers of an LFM2, for a model type and for plans that are made at run time.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, dtype A = graph::input_type<W>>
constexpr auto lfm2_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const auto ffn = residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps} |
                            FFN<W, A>{c.hidden_size, c.intermediate_size, c.hidden_act} |
                            linear<W, A>{"ffn_down.weight", c.intermediate_size, c.hidden_size});
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers, c.recurrent_layers.pattern(c.num_hidden_layers),
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | short_conv<W, A>{c}
                    | linear<W, A>{"shortconv.out_proj.weight", c.hidden_size, c.hidden_size})
           | ffn,
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | self_attention<W, A, qk_norm::rms>{c}
                    | linear<W, A>{"attn_output.weight", c.q_size(), c.hidden_size})
           | ffn)
       | rms_norm{"token_embd_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct lfm2 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return lfm2_graph<W, FFN>(c, H, D); }
};

/// LiquidAI/LFM2-1.2B
inline constexpr decoder_config lfm2_12b_config{.model_type = architecture::lfm2,
                                                .hidden_size = 2048,
                                                .intermediate_size = 8192,
                                                .num_hidden_layers = 16,
                                                .num_attention_heads = 32,
                                                .num_key_value_heads = 8,
                                                .head_dim = 64,
                                                .vocab_size = 65'536,
                                                .max_position_embeddings = 128'000,
                                                .rope_theta = 1'000'000.f,
                                                .rms_norm_eps = 1e-5f,
                                                .hidden_act = activation::silu,
                                                .tie_word_embeddings = true,
                                                .recurrent_layers = layer_set::all_but(16, 2, 5, 8, 10, 12, 14),
                                                .conv_taps = 3};
/// LiquidAI/LFM2-350M
inline constexpr decoder_config lfm2_350m_config = [] {
  decoder_config c = lfm2_12b_config;
  c.hidden_size = 1024;
  c.intermediate_size = 4608;
  c.num_attention_heads = 16;
  return c;
}();
/// LiquidAI/LFM2-700M
inline constexpr decoder_config lfm2_700m_config = [] {
  decoder_config c = lfm2_12b_config;
  c.hidden_size = 1536;
  c.intermediate_size = 6912;
  c.num_attention_heads = 24;
  return c;
}();
/// LiquidAI/LFM2-2.6B
inline constexpr decoder_config lfm2_26b_config = [] {
  decoder_config c = lfm2_12b_config;
  c.intermediate_size = 10'752;
  c.num_hidden_layers = 30;
  c.recurrent_layers = layer_set::all_but(30, 2, 5, 9, 13, 17, 21, 24, 27);
  return c;
}();
/// LiquidAI/LFM2-350M with matrices of codec W.
template <dtype W = dtype::bf16>
struct lfm2_350m : lfm2<lfm2_350m_config, W> {
  static constexpr std::string_view name = "lfm2_350m";
};
/// LiquidAI/LFM2-700M with matrices of codec W.
template <dtype W = dtype::bf16>
struct lfm2_700m : lfm2<lfm2_700m_config, W> {
  static constexpr std::string_view name = "lfm2_700m";
};
/// LiquidAI/LFM2-1.2B with matrices of codec W.
template <dtype W = dtype::bf16>
struct lfm2_12b : lfm2<lfm2_12b_config, W> {
  static constexpr std::string_view name = "lfm2_12b";
};
/// LiquidAI/LFM2-2.6B with matrices of codec W.
template <dtype W = dtype::bf16>
struct lfm2_26b : lfm2<lfm2_26b_config, W> {
  static constexpr std::string_view name = "lfm2_26b";
};

}  // namespace intaglio::models
