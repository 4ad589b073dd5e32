// SPDX-License-Identifier: MIT
// ERNIE 4.5 without experts: a Llama whose neighbouring channels are rotated together; rows are reordered for that as a
// file is read. Source: transformers, models/ernie4_5, whose defaults belong to the 0.3B model.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// baidu/ERNIE-4.5-0.3B-PT
inline constexpr decoder_config ernie45_03b_config{.model_type = architecture::ernie4_5,
                                                   .hidden_size = 1024,
                                                   .intermediate_size = 3072,
                                                   .num_hidden_layers = 18,
                                                   .num_attention_heads = 16,
                                                   .num_key_value_heads = 2,
                                                   .head_dim = 128,
                                                   .vocab_size = 103'424,
                                                   .max_position_embeddings = 131'072,
                                                   .rope_theta = 500'000.f,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = true};
/// baidu/ERNIE-4.5-0.3B-PT with matrices of codec W.
template <dtype W = dtype::bf16>
struct ernie45_03b : llama<ernie45_03b_config, W> {
  static constexpr std::string_view name = "ernie45_03b";
};

}  // namespace intaglio::models
