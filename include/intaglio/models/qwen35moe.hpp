// SPDX-License-Identifier: MIT
// Qwen3.5 and Qwen3.6 with experts: Qwen3.5's layers, whose FFNs are Qwen3-Next's mixtures with a shared expert.
// Source: transformers, models/qwen3_5_moe; values from the published config.json.
#pragma once

#include "intaglio/models/qwen3next.hpp"

namespace intaglio::models {

/// The type of a model. Parameters as for qwen35.
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct qwen35moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return qwen3next_graph<W, dtype::f32, graph::delta_gates::apart>(c, H, D); }
};

/// Qwen/Qwen3.5-35B-A3B, Qwen/Qwen3.6-35B-A3B
inline constexpr decoder_config qwen35_35b_a3b_config = [] {
  decoder_config c = qwen35_4b_config;
  c.model_type = architecture::qwen35moe;
  c.hidden_size = 2048;
  c.intermediate_size = 512;
  c.num_hidden_layers = 40;
  c.num_key_value_heads = 2;
  c.tie_word_embeddings = false;
  c.num_local_experts = 256;
  c.num_experts_per_tok = 8;
  c.recurrent_layers = layer_set::all_but_every(4, 40);
  c.shared_expert_intermediate_size = 512;
  return c;
}();
/// Qwen/Qwen3.5-35B-A3B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen35_35b_a3b : qwen35moe<qwen35_35b_a3b_config, W> {
  static constexpr std::string_view name = "qwen35_35b_a3b";
};

}  // namespace intaglio::models
