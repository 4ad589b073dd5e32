// SPDX-License-Identifier: MIT
// Qwen2 with experts: biases of q, k and v, and mixtures with a gated shared expert. Experts are weighed by a softmax
// over all of them. Source: transformers, models/qwen2_moe, whose defaults belong to the A2.7B model.
#pragma once

#include "intaglio/models/mixtral.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct qwen2moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() {
    return mixtral_graph<W, dtype::f32, graph::qk_norm::none, graph::qkv_bias::added>(c, H, D);
  }
};

/// Qwen/Qwen1.5-MoE-A2.7B-Chat
inline constexpr decoder_config qwen15_moe_a27b_config{.model_type = architecture::qwen2moe,
                                                       .hidden_size = 2048,
                                                       .intermediate_size = 1408,
                                                       .num_hidden_layers = 24,
                                                       .num_attention_heads = 16,
                                                       .num_key_value_heads = 16,
                                                       .head_dim = 128,
                                                       .vocab_size = 151'936,
                                                       .max_position_embeddings = 8192,
                                                       .rope_theta = 1'000'000.f,
                                                       .rms_norm_eps = 1e-6f,
                                                       .hidden_act = activation::silu,
                                                       .tie_word_embeddings = false,
                                                       .num_local_experts = 60,
                                                       .num_experts_per_tok = 4,
                                                       .shared_expert_intermediate_size = 5632,
                                                       .norm_topk_prob = false};
/// Qwen/Qwen1.5-MoE-A2.7B-Chat with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen15_moe_a27b : qwen2moe<qwen15_moe_a27b_config, W> {
  static constexpr std::string_view name = "qwen15_moe_a27b";
};

}  // namespace intaglio::models
