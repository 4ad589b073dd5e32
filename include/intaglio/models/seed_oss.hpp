// SPDX-License-Identifier: MIT
// Seed-OSS: a Qwen2 whose head_dim is independent of hidden_size. Source: transformers, models/seed_oss. The sizes are
// not yet compared with the published config.json.
#pragma once

#include "intaglio/models/qwen2.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct seed_oss {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return qwen2<c, W, H, D>::graph(); }
};

/// ByteDance-Seed/Seed-OSS-36B-Instruct
inline constexpr decoder_config seed_oss_36b_config{.model_type = architecture::seed_oss,
                                                    .hidden_size = 5120,
                                                    .intermediate_size = 27'648,
                                                    .num_hidden_layers = 64,
                                                    .num_attention_heads = 80,
                                                    .num_key_value_heads = 8,
                                                    .head_dim = 128,
                                                    .vocab_size = 155'136,
                                                    .max_position_embeddings = 524'288,
                                                    .rope_theta = 10'000'000.f,
                                                    .rms_norm_eps = 1e-6f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = false};
/// ByteDance-Seed/Seed-OSS-36B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct seed_oss_36b : seed_oss<seed_oss_36b_config, W> {
  static constexpr std::string_view name = "seed_oss_36b";
};

}  // namespace intaglio::models
