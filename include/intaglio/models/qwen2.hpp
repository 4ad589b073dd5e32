// SPDX-License-Identifier: MIT
// Qwen2 and Qwen2.5: a Llama with biases of q, k and v. Source: transformers, models/qwen2; Qwen2 Technical Report
// 2024; values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct qwen2 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() {
    return llama_graph<W, FFN, graph::qk_norm::none, graph::qkv_bias::added, inputs_of<c, W>>(c, H, D);
  }
};

/// Qwen/Qwen2.5-0.5B-Instruct, and Qwen/Qwen2-0.5B-Instruct. The base models of Qwen2 and Qwen2.5 differ only in
/// max_position_embeddings: it is 32,768 in the 0.5B and 3B of Qwen2.5 and 131,072 in the others.
inline constexpr decoder_config qwen25_05b_config{.model_type = architecture::qwen2,
                                                  .hidden_size = 896,
                                                  .intermediate_size = 4864,
                                                  .num_hidden_layers = 24,
                                                  .num_attention_heads = 14,
                                                  .num_key_value_heads = 2,
                                                  .head_dim = 64,
                                                  .vocab_size = 151'936,
                                                  .max_position_embeddings = 32'768,
                                                  .rope_theta = 1'000'000.f,
                                                  .rms_norm_eps = 1e-6f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = true};
/// Qwen/Qwen2.5-1.5B-Instruct, and Qwen/Qwen2-1.5B-Instruct
inline constexpr decoder_config qwen25_15b_config = [] {
  decoder_config c = qwen25_05b_config;
  c.hidden_size = 1536;
  c.intermediate_size = 8960;
  c.num_hidden_layers = 28;
  c.num_attention_heads = 12;
  c.head_dim = 128;
  return c;
}();
/// Qwen/Qwen2.5-3B-Instruct
inline constexpr decoder_config qwen25_3b_config = [] {
  decoder_config c = qwen25_15b_config;
  c.hidden_size = 2048;
  c.intermediate_size = 11'008;
  c.num_hidden_layers = 36;
  c.num_attention_heads = 16;
  return c;
}();
/// Qwen/Qwen2.5-7B-Instruct, and Qwen/Qwen2-7B-Instruct
inline constexpr decoder_config qwen25_7b_config = [] {
  decoder_config c = qwen25_15b_config;
  c.hidden_size = 3584;
  c.intermediate_size = 18'944;
  c.num_attention_heads = 28;
  c.num_key_value_heads = 4;
  c.vocab_size = 152'064;
  c.tie_word_embeddings = false;
  return c;
}();
/// Qwen/Qwen2.5-14B-Instruct; the base models of this size and of the larger ones have an epsilon of 1e-5
inline constexpr decoder_config qwen25_14b_config = [] {
  decoder_config c = qwen25_7b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 13'824;
  c.num_hidden_layers = 48;
  c.num_attention_heads = 40;
  c.num_key_value_heads = 8;
  return c;
}();
/// Qwen/Qwen2.5-32B-Instruct
inline constexpr decoder_config qwen25_32b_config = [] {
  decoder_config c = qwen25_14b_config;
  c.intermediate_size = 27'648;
  c.num_hidden_layers = 64;
  return c;
}();
/// Qwen/Qwen2.5-72B-Instruct
inline constexpr decoder_config qwen25_72b_config = [] {
  decoder_config c = qwen25_14b_config;
  c.hidden_size = 8192;
  c.intermediate_size = 29'568;
  c.num_hidden_layers = 80;
  c.num_attention_heads = 64;
  return c;
}();
/// Qwen/Qwen2.5-0.5B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_05b : qwen2<qwen25_05b_config, W> {
  static constexpr std::string_view name = "qwen25_05b";
};
/// Qwen/Qwen2.5-1.5B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_15b : qwen2<qwen25_15b_config, W> {
  static constexpr std::string_view name = "qwen25_15b";
};
/// Qwen/Qwen2.5-3B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_3b : qwen2<qwen25_3b_config, W> {
  static constexpr std::string_view name = "qwen25_3b";
};
/// Qwen/Qwen2.5-7B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_7b : qwen2<qwen25_7b_config, W> {
  static constexpr std::string_view name = "qwen25_7b";
};
/// Qwen/Qwen2.5-14B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_14b : qwen2<qwen25_14b_config, W> {
  static constexpr std::string_view name = "qwen25_14b";
};
/// Qwen/Qwen2.5-32B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_32b : qwen2<qwen25_32b_config, W> {
  static constexpr std::string_view name = "qwen25_32b";
};
/// Qwen/Qwen2.5-72B-Instruct with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen25_72b : qwen2<qwen25_72b_config, W> {
  static constexpr std::string_view name = "qwen25_72b";
};

}  // namespace intaglio::models
