// SPDX-License-Identifier: MIT
// gpt-oss: attention with biases, sinks and a window in every other layer, then experts with biases and a clamped
// SwiGLU. Source: transformers, models/gpt_oss; OpenAI 2025; values from the published config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/moe.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// A block of a gpt-oss. @tparam A of attention's matrices  @tparam E of the experts'  @tparam R of the router's
template <dtype A, dtype E, dtype R = dtype::f32>
constexpr auto gptoss_block(const decoder_config& c, const graph::attention_reach& reach) {
  using namespace intaglio::graph;
  // clang-format off
  return residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                | self_attention<A, input_type<A>, qk_norm::none, qkv_bias::added, attention_sink::learned>{c, reach}
                | linear<A>{"attn_output.weight", c.q_size(), c.hidden_size, "attn_output.bias"})
       | residual(rms_norm{"post_attention_norm.weight", c.rms_norm_eps}
                | moe{linear<R>{"ffn_gate_inp.weight", c.hidden_size, c.num_local_experts, "ffn_gate_inp.bias"},
                      biased_experts<E>{c.hidden_size, c.intermediate_size, c.num_local_experts,
                                        shader::clamped_swiglu{}},
                      c.num_experts_per_tok, !c.norm_topk_prob});
  // clang-format on
}

/// The layers of a gpt-oss, for a model type and for plans that are made at run time.
template <dtype A, dtype E = dtype::mxfp4, dtype R = dtype::f32>
constexpr auto gptoss_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers, every(c.sliding_window_pattern, gptoss_block<A, E, R>(c, sliding(c)),
                                              gptoss_block<A, E, R>(c, full(c))))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of all matrices but the head's  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::mxfp4, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct gptoss {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return gptoss_graph<W, W>(c, H, D); }
};

/// openai/gpt-oss-20b
inline constexpr decoder_config gptoss_20b_config{
    .model_type = architecture::gptoss,
    .hidden_size = 2880,
    .intermediate_size = 2880,
    .num_hidden_layers = 24,
    .num_attention_heads = 64,
    .num_key_value_heads = 8,
    .head_dim = 64,
    .vocab_size = 201'088,
    .max_position_embeddings = 131'072,
    .rope_theta = 150'000.f,
    .rope_scaling = {rope_type::yarn, 32.f, 1.f, 32.f, 4096, 1.3465736f, false},
    .rms_norm_eps = 1e-5f,
    .hidden_act = activation::silu,
    .tie_word_embeddings = false,
    .sliding_window = 128,
    .sliding_window_pattern = 2,
    .num_local_experts = 32,
    .num_experts_per_tok = 4};
/// openai/gpt-oss-20b with matrices of codec W.
template <dtype W = dtype::mxfp4>
struct gptoss_20b : gptoss<gptoss_20b_config, W> {
  static constexpr std::string_view name = "gptoss_20b";
};
/// openai/gpt-oss-120b
inline constexpr decoder_config gptoss_120b_config = [] {
  decoder_config c = gptoss_20b_config;
  c.num_hidden_layers = 36;
  c.num_local_experts = 128;
  return c;
}();
/// openai/gpt-oss-120b with matrices of codec W.
template <dtype W = dtype::mxfp4>
struct gptoss_120b : gptoss<gptoss_120b_config, W> {
  static constexpr std::string_view name = "gptoss_120b";
};

}  // namespace intaglio::models
