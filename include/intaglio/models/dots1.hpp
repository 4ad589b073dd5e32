// SPDX-License-Identifier: MIT
// dots.llm1: GLM-4.5's mixtures after a dense layer, with a Qwen3's attention. Source: transformers, models/dots1;
// values from the published config.json.
#pragma once

#include "intaglio/models/glm4moe.hpp"

namespace intaglio::models {

/// The layers of a dots.llm1, for a model type and for plans that are made at run time. `c` must outlive them.
template <dtype W>
constexpr auto dots1_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  return glm4moe_graph<W, graph::qk_norm::rms, graph::qkv_bias::none>(c, head, embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct dots1 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return dots1_graph<W>(c, H, D); }
};

/// rednote-hilab/dots.llm1.inst, and -base
inline constexpr decoder_config dots1_142b_config{.model_type = architecture::dots1,
                                                  .hidden_size = 4096,
                                                  .intermediate_size = 1408,
                                                  .num_hidden_layers = 62,
                                                  .num_attention_heads = 32,
                                                  .num_key_value_heads = 32,
                                                  .head_dim = 128,
                                                  .vocab_size = 152'064,
                                                  .max_position_embeddings = 32'768,
                                                  .rope_theta = 10'000'000.f,
                                                  .rms_norm_eps = 1e-5f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = false,
                                                  .num_local_experts = 128,
                                                  .num_experts_per_tok = 6,
                                                  .shared_expert_intermediate_size = 2816,
                                                  .routed_scaling_factor = 2.5f,
                                                  .use_expert_bias = true,
                                                  .num_dense_layers = 1,
                                                  .dense_intermediate_size = 10'944};
/// rednote-hilab/dots.llm1.inst with matrices of codec W.
template <dtype W = dtype::bf16>
struct dots1_142b : dots1<dots1_142b_config, W> {
  static constexpr std::string_view name = "dots1_142b";
};

}  // namespace intaglio::models
