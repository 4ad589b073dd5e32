// SPDX-License-Identifier: MIT
// Hunyuan's dense models: a Llama with norms of the heads of q and k after the rotary embedding. The base of the
// rotation is a constant that `alpha` gives. Source: transformers, models/hunyuan_v1_dense; sizes from the published
// config.json, as docs/models.md says.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct hunyuan_dense {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return llama_graph<W, FFN, graph::qk_norm::rms_turned>(c, H, D); }
};

/// tencent/Hunyuan-0.5B-Instruct
inline constexpr decoder_config hunyuan_05b_config{.model_type = architecture::hunyuan_dense,
                                                   .hidden_size = 1024,
                                                   .intermediate_size = 3584,
                                                   .num_hidden_layers = 24,
                                                   .num_attention_heads = 16,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 128,
                                                   .vocab_size = 120'818,
                                                   .max_position_embeddings = 262'144,
                                                   .rope_theta = 11'158'840.f,  // 10,000 * 1000^(128 / 126)
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = true};
/// tencent/Hunyuan-1.8B-Instruct
inline constexpr decoder_config hunyuan_18b_config = [] {
  decoder_config c = hunyuan_05b_config;
  c.hidden_size = 2048;
  c.intermediate_size = 6144;
  c.num_hidden_layers = 32;
  c.num_key_value_heads = 4;
  return c;
}();
/// tencent/Hunyuan-4B-Instruct
inline constexpr decoder_config hunyuan_4b_config = [] {
  decoder_config c = hunyuan_05b_config;
  c.hidden_size = 3072;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 36;
  c.num_attention_heads = 32;
  return c;
}();
/// tencent/Hunyuan-7B-Instruct
inline constexpr decoder_config hunyuan_7b_config = [] {
  decoder_config c = hunyuan_4b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 14'336;
  c.num_hidden_layers = 32;
  c.vocab_size = 128'167;
  return c;
}();
/// tencent/Hunyuan-0.5B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct hunyuan_05b : hunyuan_dense<hunyuan_05b_config, W> {
  static constexpr std::string_view name = "hunyuan_05b";
};
/// tencent/Hunyuan-1.8B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct hunyuan_18b : hunyuan_dense<hunyuan_18b_config, W> {
  static constexpr std::string_view name = "hunyuan_18b";
};
/// tencent/Hunyuan-4B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct hunyuan_4b : hunyuan_dense<hunyuan_4b_config, W> {
  static constexpr std::string_view name = "hunyuan_4b";
};
/// tencent/Hunyuan-7B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct hunyuan_7b : hunyuan_dense<hunyuan_7b_config, W> {
  static constexpr std::string_view name = "hunyuan_7b";
};

}  // namespace intaglio::models
