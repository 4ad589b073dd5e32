// SPDX-License-Identifier: MIT
// OLMoE: mixtures whose experts are weighed by a softmax over all of them; q and k are normalised over all heads at
// once. Source: transformers, models/olmoe; Muennighoff et al. 2024; values from the published config.json.
#pragma once

#include "intaglio/models/mixtral.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct olmoe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return mixtral_graph<W, dtype::f32, graph::qk_norm::rms_all>(c, H, D); }
};

/// allenai/OLMoE-1B-7B-0924
inline constexpr decoder_config olmoe_1b_7b_config{.model_type = architecture::olmoe,
                                                   .hidden_size = 2048,
                                                   .intermediate_size = 1024,
                                                   .num_hidden_layers = 16,
                                                   .num_attention_heads = 16,
                                                   .num_key_value_heads = 16,
                                                   .head_dim = 128,
                                                   .vocab_size = 50'304,
                                                   .max_position_embeddings = 4096,
                                                   .rope_theta = 10'000.f,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = false,
                                                   .num_local_experts = 64,
                                                   .num_experts_per_tok = 8,
                                                   .norm_topk_prob = false};
/// allenai/OLMoE-1B-7B-0924 with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmoe_1b_7b : olmoe<olmoe_1b_7b_config, W> {
  static constexpr std::string_view name = "olmoe_1b_7b";
};

}  // namespace intaglio::models
