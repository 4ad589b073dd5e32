// SPDX-License-Identifier: MIT
// Qwen3 with experts: Mixtral's mixture with the attention of a Qwen3. Source: transformers, models/qwen3_moe; Qwen3
// Technical Report 2025; values from the published config.json.
#pragma once

#include "intaglio/models/mixtral.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam R of the router's
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          dtype R = dtype::f32>
struct qwen3moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return mixtral_graph<W, R, graph::qk_norm::rms>(c, H, D); }
};

/// Qwen/Qwen3-30B-A3B; intermediate_size is config.json's moe_intermediate_size
inline constexpr decoder_config qwen3_30b_a3b_config{.model_type = architecture::qwen3moe,
                                                     .hidden_size = 2048,
                                                     .intermediate_size = 768,
                                                     .num_hidden_layers = 48,
                                                     .num_attention_heads = 32,
                                                     .num_key_value_heads = 4,
                                                     .head_dim = 128,
                                                     .vocab_size = 151'936,
                                                     .max_position_embeddings = 40'960,
                                                     .rope_theta = 1'000'000.f,
                                                     .rms_norm_eps = 1e-6f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = false,
                                                     .num_local_experts = 128,
                                                     .num_experts_per_tok = 8};
/// Qwen/Qwen3-30B-A3B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_30b_a3b : qwen3moe<qwen3_30b_a3b_config, W> {
  static constexpr std::string_view name = "qwen3_30b_a3b";
};
/// Qwen/Qwen3-30B-A3B-Instruct-2507, and Qwen/Qwen3-30B-A3B-Thinking-2507
inline constexpr decoder_config qwen3_30b_a3b_2507_config = [] {
  decoder_config c = qwen3_30b_a3b_config;
  c.max_position_embeddings = 262'144;
  c.rope_theta = 10'000'000.f;
  return c;
}();
/// Qwen/Qwen3-30B-A3B-Instruct-2507 with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_30b_a3b_2507 : qwen3moe<qwen3_30b_a3b_2507_config, W> {
  static constexpr std::string_view name = "qwen3_30b_a3b_2507";
};
/// Qwen/Qwen3-235B-A22B
inline constexpr decoder_config qwen3_235b_a22b_config = [] {
  decoder_config c = qwen3_30b_a3b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 1536;
  c.num_hidden_layers = 94;
  c.num_attention_heads = 64;
  return c;
}();
/// Qwen/Qwen3-235B-A22B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_235b_a22b : qwen3moe<qwen3_235b_a22b_config, W> {
  static constexpr std::string_view name = "qwen3_235b_a22b";
};

}  // namespace intaglio::models
