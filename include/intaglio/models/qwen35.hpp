// SPDX-License-Identifier: MIT
// Qwen3.5: gated delta rules, and attention with a gate in every fourth layer. Source: transformers, models/qwen3_5;
// values from the config.json of each published model.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/delta_net.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"

namespace intaglio::models {

/// A model of blocks with a gated delta rule and blocks with attention, each followed by `ffn`. @param ffn a residual
/// sublayer
template <dtype W, graph::delta_gates Gates, class Half>
constexpr auto qwen35_layers(const decoder_config& c, dtype head, dtype embedding_type, Half ffn) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers, c.recurrent_layers.pattern(c.num_hidden_layers),
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | delta_net<W, Gates>{c}
                    | linear<W>{"ssm_out.weight", c.delta_net.value_size(), c.hidden_size})
           | ffn,
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | gated_attention<W>{c}
                    | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size})
           | ffn)
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The layers of a Qwen3.5, for a model type and for plans that are made at run time.
template <dtype W>
constexpr auto qwen35_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  return qwen35_layers<W, delta_gates::apart>(
      c, head, embedding_type,
      residual(rms_norm{"post_attention_norm.weight", c.rms_norm_eps} |
               gated_ffn<W>{c.hidden_size, c.intermediate_size, c.hidden_act} |
               linear<W>{"ffn_down.weight", c.intermediate_size, c.hidden_size}));
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct qwen35 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return qwen35_graph<W>(c, H, D); }
};

/// Qwen/Qwen3.5-4B
inline constexpr decoder_config qwen35_4b_config{.model_type = architecture::qwen35,
                                                 .hidden_size = 2560,
                                                 .intermediate_size = 9216,
                                                 .num_hidden_layers = 32,
                                                 .num_attention_heads = 16,
                                                 .num_key_value_heads = 4,
                                                 .head_dim = 256,
                                                 .vocab_size = 248'320,
                                                 .max_position_embeddings = 262'144,
                                                 .rope_theta = 10'000'000.f,
                                                 .rotary_dim = 64,
                                                 .rms_norm_eps = 1e-6f,
                                                 .hidden_act = activation::silu,
                                                 .tie_word_embeddings = true,
                                                 .recurrent_layers = layer_set::all_but_every(4, 32),
                                                 .conv_taps = 4,
                                                 .delta_net = {16, 32, 128, 128}};
/// Qwen/Qwen3.5-0.8B
inline constexpr decoder_config qwen35_08b_config = [] {
  decoder_config c = qwen35_4b_config;
  c.hidden_size = 1024;
  c.intermediate_size = 3584;
  c.num_hidden_layers = 24;
  c.num_attention_heads = 8;
  c.num_key_value_heads = 2;
  c.recurrent_layers = layer_set::all_but_every(4, 24);
  c.delta_net.value_heads = 16;
  return c;
}();
/// Qwen/Qwen3.5-27B, Qwen/Qwen3.6-27B
inline constexpr decoder_config qwen35_27b_config = [] {
  decoder_config c = qwen35_4b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 17'408;
  c.num_hidden_layers = 64;
  c.num_attention_heads = 24;
  c.tie_word_embeddings = false;
  c.recurrent_layers = layer_set::all_but_every(4, 64);
  c.delta_net.value_heads = 48;
  return c;
}();
/// Qwen/Qwen3.5-0.8B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen35_08b : qwen35<qwen35_08b_config, W> {
  static constexpr std::string_view name = "qwen35_08b";
};
/// Qwen/Qwen3.5-4B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen35_4b : qwen35<qwen35_4b_config, W> {
  static constexpr std::string_view name = "qwen35_4b";
};
/// Qwen/Qwen3.5-27B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen35_27b : qwen35<qwen35_27b_config, W> {
  static constexpr std::string_view name = "qwen35_27b";
};

}  // namespace intaglio::models
