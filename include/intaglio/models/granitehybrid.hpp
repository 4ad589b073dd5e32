// SPDX-License-Identifier: MIT
// Granite 4.0 H: Mamba-2 in most layers, attention without rotation in some, and Granite's multipliers. The larger
// models have experts with a shared expert. Source: transformers, models/granitemoehybrid; values from the config.json
// of each published model.
#pragma once

#include "intaglio/graph/layers/mamba2.hpp"
#include "intaglio/graph/layers/shared_expert.hpp"
#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The layers of a Granite 4.0 H, for a model type and for plans that are made at run time. The stream is divided by
/// residual_multiplier, as llama_graph explains.
template <dtype W>
constexpr auto granitehybrid_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const float eps = c.rms_norm_eps / (c.residual_multiplier * c.residual_multiplier);
  const ffn_or_mixture<W> ffn{&c, eps};
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   c.embedding_multiplier / c.residual_multiplier}
       | repeat(c.num_hidden_layers, c.recurrent_layers.pattern(c.num_hidden_layers),
             residual(rms_norm{"attn_norm.weight", eps}
                    | mamba2<W>{c}
                    | linear<W>{"ssm_out.weight", c.delta_net.value_size(), c.hidden_size})
           | ffn,
             residual(rms_norm{"attn_norm.weight", eps}
                    | self_attention<W>{c}
                    | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size})
           | ffn)
       | rms_norm{"output_norm.weight", eps, 1 / c.logits_scaling}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct granitehybrid {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return granitehybrid_graph<W>(c, H, D); }
};

/// ibm-granite/granite-4.0-h-micro; intermediate_size is config.json's shared_intermediate_size
inline constexpr decoder_config granite_4_h_micro_config{.model_type = architecture::granitehybrid,
                                                         .hidden_size = 2048,
                                                         .intermediate_size = 8192,
                                                         .num_hidden_layers = 40,
                                                         .num_attention_heads = 32,
                                                         .num_key_value_heads = 8,
                                                         .head_dim = 64,
                                                         .vocab_size = 100'352,
                                                         .max_position_embeddings = 131'072,
                                                         .rope_theta = 10'000.f,
                                                         .no_rope_layer_interval = 1,
                                                         .rms_norm_eps = 1e-5f,
                                                         .hidden_act = activation::silu,
                                                         .tie_word_embeddings = true,
                                                         .embedding_multiplier = 12.f,
                                                         .attention_multiplier = 0.015625f,
                                                         .residual_multiplier = 0.22f,
                                                         .logits_scaling = 8.f,
                                                         .recurrent_layers = layer_set::all_but(40, 5, 15, 25, 35),
                                                         .conv_taps = 4,
                                                         .delta_net = {1, 64, 128, 64}};
/// ibm-granite/granite-4.0-h-350m
inline constexpr decoder_config granite_4_h_350m_config = [] {
  decoder_config c = granite_4_h_micro_config;
  c.hidden_size = 768;
  c.intermediate_size = 2048;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 12;
  c.num_key_value_heads = 4;
  c.max_position_embeddings = 32'768;
  c.residual_multiplier = 0.246f;
  c.logits_scaling = 3.f;
  c.recurrent_layers = layer_set::all_but(32, 10, 13, 17, 27);
  c.delta_net = {1, 48, 128, 32};
  return c;
}();
/// ibm-granite/granite-4.0-h-tiny
inline constexpr decoder_config granite_4_h_tiny_config = [] {
  decoder_config c = granite_4_h_micro_config;
  c.hidden_size = 1536;
  c.intermediate_size = 512;
  c.num_attention_heads = 12;
  c.num_key_value_heads = 4;
  c.head_dim = 128;
  c.attention_multiplier = 0.0078125f;
  c.logits_scaling = 6.f;
  c.num_local_experts = 64;
  c.num_experts_per_tok = 6;
  c.delta_net = {1, 48, 128, 64};
  c.shared_expert_intermediate_size = 1024;
  return c;
}();
/// ibm-granite/granite-4.0-h-micro with matrices of codec W.
template <dtype W = dtype::bf16>
struct granite_4_h_micro : granitehybrid<granite_4_h_micro_config, W> {
  static constexpr std::string_view name = "granite_4_h_micro";
};
/// ibm-granite/granite-4.0-h-350m with matrices of codec W.
template <dtype W = dtype::bf16>
struct granite_4_h_350m : granitehybrid<granite_4_h_350m_config, W> {
  static constexpr std::string_view name = "granite_4_h_350m";
};
/// ibm-granite/granite-4.0-h-tiny with matrices of codec W.
template <dtype W = dtype::bf16>
struct granite_4_h_tiny : granitehybrid<granite_4_h_tiny_config, W> {
  static constexpr std::string_view name = "granite_4_h_tiny";
};

}  // namespace intaglio::models
