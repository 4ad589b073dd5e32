// SPDX-License-Identifier: MIT
// Falcon-H1: each layer has Mamba-2 and attention beside each other, which read one norm. The multipliers of its
// config.json are in the values of the matrices (io/weight_factors.hpp). Source: transformers, models/falcon_h1; values
// from the config.json of each published model.
#pragma once

#include "intaglio/graph/layers/mamba2.hpp"
#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// Attention and Mamba-2 beside each other: x + Wo attention(norm(x)) + Wout mamba2(norm(x)). Tensors attn_norm,
/// attn_output, ssm_out, and those of self_attention and mamba2.
/// @shape  x, out: [tokens, hidden_size] f32
/// @source Zuo et al. 2025 (Falcon-H1); transformers, FalconH1DecoderLayer
template <dtype W>
struct falcon_h1_mixers {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const ir::value_id h = rms_norm{"attn_norm.weight", c.rms_norm_eps}.forward(t, x);
    const ir::value_id heads = self_attention<W>{c}.forward(t, h);
    const ir::value_id scanned = mamba2<W>{c}.forward(t, h);
    const ir::value_id attended = linear<W>{"attn_output.weight", c.q_size(), c.hidden_size}.forward(t, heads);
    const ir::value_id y = t.add(x, attended);
    return t.add(y, linear<W>{"ssm_out.weight", c.delta_net.value_size(), c.hidden_size}.forward(t, scanned));
  }
};

/// The layers of a Falcon-H1, for a model type and for plans that are made at run time. `c` must outlive them. A tied
/// head has another multiplier than the embedding: logits_scaling is the embedding's divided by the head's.
template <dtype W>
constexpr auto falcon_h1_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const float eps = c.rms_norm_eps;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers,
             falcon_h1_mixers<W>{&c}
           | residual(rms_norm{"ffn_norm.weight", eps}
                    | gated_ffn<W>{c.hidden_size, c.intermediate_size, c.hidden_act}
                    | linear<W>{"ffn_down.weight", c.intermediate_size, c.hidden_size}))
       | rms_norm{"output_norm.weight", eps, 1 / c.logits_scaling}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct falcon_h1 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return falcon_h1_graph<W>(c, H, D); }
};

/// tiiuae/Falcon-H1-0.5B-Instruct
inline constexpr decoder_config falcon_h1_05b_config{.model_type = architecture::falcon_h1,
                                                     .hidden_size = 1024,
                                                     .intermediate_size = 2048,
                                                     .num_hidden_layers = 36,
                                                     .num_attention_heads = 8,
                                                     .num_key_value_heads = 2,
                                                     .head_dim = 64,
                                                     .vocab_size = 32'784,
                                                     .max_position_embeddings = 16'384,
                                                     .rope_theta = 1e11f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = false,
                                                     .conv_taps = 4,
                                                     .delta_net = {1, 24, 128, 64},
                                                     .mamba_rms_norm = false};
/// tiiuae/Falcon-H1-1.5B-Instruct
inline constexpr decoder_config falcon_h1_15b_config = [] {
  decoder_config c = falcon_h1_05b_config;
  c.hidden_size = 2048;
  c.intermediate_size = 4608;
  c.num_hidden_layers = 24;
  c.head_dim = 128;
  c.vocab_size = 65'537;
  c.max_position_embeddings = 131'072;
  c.delta_net = {1, 48, 256, 64};
  c.mamba_rms_norm = true;
  return c;
}();
/// tiiuae/Falcon-H1-3B-Instruct
inline constexpr decoder_config falcon_h1_3b_config = [] {
  decoder_config c = falcon_h1_15b_config;
  c.hidden_size = 2560;
  c.intermediate_size = 6144;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 10;
  c.delta_net = {1, 32, 256, 128};
  return c;
}();
/// tiiuae/Falcon-H1-7B-Instruct
inline constexpr decoder_config falcon_h1_7b_config = [] {
  decoder_config c = falcon_h1_3b_config;
  c.hidden_size = 3072;
  c.intermediate_size = 12'288;
  c.num_hidden_layers = 44;
  c.num_attention_heads = 12;
  c.vocab_size = 130'048;
  c.max_position_embeddings = 262'144;
  c.delta_net = {1, 24, 256, 128};
  return c;
}();
/// tiiuae/Falcon-H1-34B-Instruct
inline constexpr decoder_config falcon_h1_34b_config = [] {
  decoder_config c = falcon_h1_7b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 21'504;
  c.num_hidden_layers = 72;
  c.num_attention_heads = 20;
  c.num_key_value_heads = 4;
  c.vocab_size = 261'120;
  c.delta_net = {2, 32, 256, 128};
  return c;
}();
/// tiiuae/Falcon-H1-0.5B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct falcon_h1_05b : falcon_h1<falcon_h1_05b_config, W> {
  static constexpr std::string_view name = "falcon_h1_05b";
};
/// tiiuae/Falcon-H1-1.5B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct falcon_h1_15b : falcon_h1<falcon_h1_15b_config, W> {
  static constexpr std::string_view name = "falcon_h1_15b";
};
/// tiiuae/Falcon-H1-3B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct falcon_h1_3b : falcon_h1<falcon_h1_3b_config, W> {
  static constexpr std::string_view name = "falcon_h1_3b";
};
/// tiiuae/Falcon-H1-7B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct falcon_h1_7b : falcon_h1<falcon_h1_7b_config, W> {
  static constexpr std::string_view name = "falcon_h1_7b";
};
/// tiiuae/Falcon-H1-34B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct falcon_h1_34b : falcon_h1<falcon_h1_34b_config, W> {
  static constexpr std::string_view name = "falcon_h1_34b";
};

}  // namespace intaglio::models
