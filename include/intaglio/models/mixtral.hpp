// SPDX-License-Identifier: MIT
// Mixtral: a Mistral whose layers have several gated units (experts), of which a router chooses a few for every token.
// Source: transformers, models/mixtral; Jiang et al. 2024; values from the published config.json. A named model is a
// template over the codec of its matrices.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/shared_expert.hpp"

namespace intaglio::models {

/// The layers of a Mixtral or a Granite with experts, for a model type and for plans that are made at run time. With
/// norms of q and k they make a Qwen3 or an OLMo with experts, with biases a Qwen2 with experts. The
/// stream is divided by residual_multiplier, as llama_graph explains.
template <dtype W, dtype R = dtype::f32, graph::qk_norm Norm = graph::qk_norm::none,
          graph::qkv_bias Bias = graph::qkv_bias::none>
constexpr auto mixtral_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const float eps = c.rms_norm_eps / (c.residual_multiplier * c.residual_multiplier);
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   c.embedding_multiplier / c.residual_multiplier}
       | repeat(c.num_hidden_layers,
             residual(rms_norm{"attn_norm.weight", eps}
                    | self_attention<W, input_type<W>, Norm, Bias>{c}
                    | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size})
           | ffn_or_mixture<W, R>{&c, eps})
       | rms_norm{"output_norm.weight", eps, 1 / c.logits_scaling}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam R of the router's
template <const decoder_config& c, dtype W = dtype::f16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          dtype R = dtype::f32>
struct mixtral {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return mixtral_graph<W, R>(c, H, D); }
};

/// mistralai/Mixtral-8x7B-Instruct-v0.1
inline constexpr decoder_config mixtral_8x7b_config{.model_type = architecture::llama,
                                                    .hidden_size = 4096,
                                                    .intermediate_size = 14'336,
                                                    .num_hidden_layers = 32,
                                                    .num_attention_heads = 32,
                                                    .num_key_value_heads = 8,
                                                    .head_dim = 128,
                                                    .vocab_size = 32'000,
                                                    .max_position_embeddings = 32'768,
                                                    .rope_theta = 1'000'000.f,
                                                    .rms_norm_eps = 1e-5f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = false,
                                                    .num_local_experts = 8,
                                                    .num_experts_per_tok = 2};
/// mistralai/Mixtral-8x7B-Instruct-v0.1 with matrices of codec W.
template <dtype W = dtype::f16>
struct mixtral_8x7b : mixtral<mixtral_8x7b_config, W> {
  static constexpr std::string_view name = "mixtral_8x7b";
};
/// mistralai/Mixtral-8x22B-Instruct-v0.1
inline constexpr decoder_config mixtral_8x22b_config = [] {
  decoder_config c = mixtral_8x7b_config;
  c.hidden_size = 6144;
  c.intermediate_size = 16'384;
  c.num_hidden_layers = 56;
  c.num_attention_heads = 48;
  c.vocab_size = 32'768;
  c.max_position_embeddings = 65'536;
  return c;
}();
/// mistralai/Mixtral-8x22B-Instruct-v0.1 with matrices of codec W.
template <dtype W = dtype::f16>
struct mixtral_8x22b : mixtral<mixtral_8x22b_config, W> {
  static constexpr std::string_view name = "mixtral_8x22b";
};

}  // namespace intaglio::models
