// SPDX-License-Identifier: MIT
// Hunyuan with experts: the attention of Hunyuan's dense models, and mixtures with a shared expert in all layers.
// Source: transformers, models/hunyuan_v1_moe; modeling_hunyuan.py of tencent/Hunyuan-A13B-Instruct; values from the
// published config.json.
#pragma once

#include "intaglio/models/mixtral.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct hunyuan_moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return mixtral_graph<W, dtype::f32, graph::qk_norm::rms_turned>(c, H, D); }
};

/// tencent/Hunyuan-A13B-Instruct
inline constexpr decoder_config hunyuan_a13b_config{.model_type = architecture::hunyuan_moe,
                                                    .hidden_size = 4096,
                                                    .intermediate_size = 3072,
                                                    .num_hidden_layers = 32,
                                                    .num_attention_heads = 32,
                                                    .num_key_value_heads = 8,
                                                    .head_dim = 128,
                                                    .vocab_size = 128'167,
                                                    .max_position_embeddings = 32'768,
                                                    .rope_theta = 11'158'840.f,  // 10,000 * 1000^(128 / 126)
                                                    .rms_norm_eps = 1e-5f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = true,
                                                    .num_local_experts = 64,
                                                    .num_experts_per_tok = 8,
                                                    .shared_expert_intermediate_size = 3072};
/// tencent/Hunyuan-A13B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct hunyuan_a13b : hunyuan_moe<hunyuan_a13b_config, W> {
  static constexpr std::string_view name = "hunyuan_a13b";
};

}  // namespace intaglio::models
