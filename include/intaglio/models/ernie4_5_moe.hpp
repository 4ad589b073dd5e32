// SPDX-License-Identifier: MIT
// ERNIE 4.5 with experts: GLM-4.5's blocks without biases and norms of heads. Its routers score experts by a softmax
// over all of them. Heads that draft tokens (multi-token prediction) are not computed. Source: transformers,
// models/ernie4_5_moe; values from the published config.json.
#pragma once

#include "intaglio/models/glm4moe.hpp"

namespace intaglio::models {

/// The layers of an ERNIE 4.5 with experts, for a model type and for plans that are made at run time. `c` must outlive
/// them.
template <dtype W>
constexpr auto ernie4_5_moe_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  return glm4moe_graph<W, graph::qk_norm::none, graph::qkv_bias::none>(c, head, embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct ernie4_5_moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return ernie4_5_moe_graph<W>(c, H, D); }
};

/// baidu/ERNIE-4.5-21B-A3B-PT, and -Thinking
inline constexpr decoder_config ernie45_21b_a3b_config{.model_type = architecture::ernie4_5_moe,
                                                       .hidden_size = 2560,
                                                       .intermediate_size = 1536,
                                                       .num_hidden_layers = 28,
                                                       .num_attention_heads = 20,
                                                       .num_key_value_heads = 4,
                                                       .head_dim = 128,
                                                       .vocab_size = 103'424,
                                                       .max_position_embeddings = 131'072,
                                                       .rope_theta = 500'000.f,
                                                       .rms_norm_eps = 1e-5f,
                                                       .hidden_act = activation::silu,
                                                       .tie_word_embeddings = true,
                                                       .num_local_experts = 64,
                                                       .num_experts_per_tok = 6,
                                                       .shared_expert_intermediate_size = 3072,
                                                       .use_expert_bias = true,
                                                       .num_dense_layers = 1,
                                                       .dense_intermediate_size = 12'288};
/// baidu/ERNIE-4.5-300B-A47B-PT
inline constexpr decoder_config ernie45_300b_a47b_config = [] {
  decoder_config c = ernie45_21b_a3b_config;
  c.hidden_size = 8192;
  c.intermediate_size = 3584;
  c.num_hidden_layers = 54;
  c.num_attention_heads = 64;
  c.num_key_value_heads = 8;
  c.tie_word_embeddings = false;
  c.num_experts_per_tok = 8;
  c.shared_expert_intermediate_size = 0;
  c.num_dense_layers = 3;
  c.dense_intermediate_size = 28'672;
  return c;
}();
/// The type of baidu/ERNIE-4.5-21B-A3B-PT.  @tparam W of the products' weights
template <dtype W = dtype::bf16>
struct ernie45_21b_a3b : ernie4_5_moe<ernie45_21b_a3b_config, W> {
  static constexpr std::string_view name = "ernie45_21b_a3b";
};
/// The type of baidu/ERNIE-4.5-300B-A47B-PT.  @tparam W of the products' weights
template <dtype W = dtype::bf16>
struct ernie45_300b_a47b : ernie4_5_moe<ernie45_300b_a47b_config, W> {
  static constexpr std::string_view name = "ernie45_300b_a47b";
};

}  // namespace intaglio::models
