// SPDX-License-Identifier: MIT
// Qwen3-Next: Qwen3.5's layers, whose FFNs are mixtures with a shared expert. Source: transformers, models/qwen3_next;
// values from the published config.json.
#pragma once

#include <type_traits>

#include "intaglio/graph/layers/shared_expert.hpp"
#include "intaglio/models/qwen35.hpp"

namespace intaglio::models {

/// The layers of a Qwen3-Next, for a model type and for plans that are made at run time. With gates apart they are
/// the layers of a Qwen3.5 with experts.
template <dtype W, dtype R = dtype::f32, graph::delta_gates Gates = graph::delta_gates::together>
constexpr auto qwen3next_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const moe experts{linear<R>{"ffn_gate_inp.weight", c.hidden_size, c.num_local_experts},
                    gated_experts<W>{c.hidden_size, c.intermediate_size, c.num_local_experts, c.hidden_act},
                    c.num_experts_per_tok, !c.norm_topk_prob};
  return qwen35_layers<W, Gates>(c, head, embedding_type,
                                 residual_moe_with_shared<W, std::remove_const_t<decltype(experts)>>{
                                     rms_norm{"post_attention_norm.weight", c.rms_norm_eps}, experts, c.hidden_size,
                                     c.shared_expert_intermediate_size, c.hidden_act});
}

/// The type of a model. Parameters as for qwen35.
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct qwen3next {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return qwen3next_graph<W>(c, H, D); }
};

/// Qwen/Qwen3-Next-80B-A3B-Instruct
inline constexpr decoder_config qwen3next_80b_a3b_config = [] {
  decoder_config c = qwen35_4b_config;
  c.model_type = architecture::qwen3next;
  c.hidden_size = 2048;
  c.intermediate_size = 512;
  c.num_hidden_layers = 48;
  c.num_key_value_heads = 2;
  c.vocab_size = 151'936;
  c.tie_word_embeddings = false;
  c.num_local_experts = 512;
  c.num_experts_per_tok = 10;
  c.recurrent_layers = layer_set::all_but_every(4, 48);
  c.shared_expert_intermediate_size = 512;
  return c;
}();
/// Qwen/Qwen3-Next-80B-A3B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3next_80b_a3b : qwen3next<qwen3next_80b_a3b_config, W> {
  static constexpr std::string_view name = "qwen3next_80b_a3b";
};

}  // namespace intaglio::models
