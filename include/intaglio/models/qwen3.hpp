// SPDX-License-Identifier: MIT
// Qwen3: a Llama with norms of the heads of q and k in front of the rotation; head_dim is independent of hidden_size.
// Source: transformers, models/qwen3; Qwen3 Technical Report 2025; values from the published config.json.
#pragma once

#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct qwen3 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() {
    return llama_graph<W, FFN, graph::qk_norm::rms, graph::qkv_bias::none, inputs_of<c, W>>(c, H, D);
  }
};

/// Qwen/Qwen3-0.6B
inline constexpr decoder_config qwen3_06b_config{.model_type = architecture::qwen3,
                                                 .hidden_size = 1024,
                                                 .intermediate_size = 3072,
                                                 .num_hidden_layers = 28,
                                                 .num_attention_heads = 16,
                                                 .num_key_value_heads = 8,
                                                 .head_dim = 128,
                                                 .vocab_size = 151'936,
                                                 .max_position_embeddings = 40'960,
                                                 .rope_theta = 1'000'000.f,
                                                 .rms_norm_eps = 1e-6f,
                                                 .hidden_act = activation::silu,
                                                 .tie_word_embeddings = true};
/// Qwen/Qwen3-1.7B
inline constexpr decoder_config qwen3_17b_config = [] {
  decoder_config c = qwen3_06b_config;
  c.hidden_size = 2048;
  c.intermediate_size = 6144;
  return c;
}();
/// Qwen/Qwen3-4B
inline constexpr decoder_config qwen3_4b_config = [] {
  decoder_config c = qwen3_06b_config;
  c.hidden_size = 2560;
  c.intermediate_size = 9728;
  c.num_hidden_layers = 36;
  c.num_attention_heads = 32;
  return c;
}();
/// Qwen/Qwen3-8B
inline constexpr decoder_config qwen3_8b_config = [] {
  decoder_config c = qwen3_4b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 12'288;
  c.tie_word_embeddings = false;
  return c;
}();
/// Qwen/Qwen3-4B-Instruct-2507, and Qwen/Qwen3-4B-Thinking-2507
inline constexpr decoder_config qwen3_4b_2507_config = [] {
  decoder_config c = qwen3_4b_config;
  c.max_position_embeddings = 262'144;
  c.rope_theta = 5'000'000.f;
  return c;
}();
/// Qwen/Qwen3-14B
inline constexpr decoder_config qwen3_14b_config = [] {
  decoder_config c = qwen3_8b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 17'408;
  c.num_hidden_layers = 40;
  c.num_attention_heads = 40;
  return c;
}();
/// Qwen/Qwen3-32B
inline constexpr decoder_config qwen3_32b_config = [] {
  decoder_config c = qwen3_14b_config;
  c.intermediate_size = 25'600;
  c.num_hidden_layers = 64;
  c.num_attention_heads = 64;
  return c;
}();
/// Qwen/Qwen3-Embedding-0.6B, whose vector is the last token's state
inline constexpr decoder_config qwen3_embedding_06b_config = [] {
  decoder_config c = qwen3_06b_config;
  c.vocab_size = 151'669;
  c.max_position_embeddings = 32'768;
  return c;
}();
/// Qwen/Qwen3-Embedding-0.6B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_embedding_06b : qwen3<qwen3_embedding_06b_config, W> {
  static constexpr std::string_view name = "qwen3_embedding_06b";
};
/// microsoft/bitnet-embedding-0.6b: ternary, with a norm in front of each matrix; sizes from microsoft/BitNet,
/// docs/bitnet-embeddings-i2s-guide.md
inline constexpr decoder_config bitnet_embedding_06b_config = [] {
  decoder_config c = qwen3_06b_config;
  c.max_position_embeddings = 32'768;
  c.activation_type = dtype::i8;
  c.ternary = true;
  c.projection_norm_eps = c.rms_norm_eps;
  return c;
}();
/// microsoft/bitnet-embedding-0.6b in I2_S. @tparam H of the embedding
template <dtype H = dtype::f16>
struct bitnet_embedding_06b : qwen3<bitnet_embedding_06b_config, dtype::i2_s, H, H> {
  static constexpr std::string_view name = "bitnet_embedding_06b";
};
/// Qwen/Qwen3-0.6B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_06b : qwen3<qwen3_06b_config, W> {
  static constexpr std::string_view name = "qwen3_06b";
};
/// Qwen/Qwen3-1.7B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_17b : qwen3<qwen3_17b_config, W> {
  static constexpr std::string_view name = "qwen3_17b";
};
/// Qwen/Qwen3-4B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_4b : qwen3<qwen3_4b_config, W> {
  static constexpr std::string_view name = "qwen3_4b";
};
/// Qwen/Qwen3-8B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_8b : qwen3<qwen3_8b_config, W> {
  static constexpr std::string_view name = "qwen3_8b";
};
/// Qwen/Qwen3-4B-Instruct-2507 with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_4b_2507 : qwen3<qwen3_4b_2507_config, W> {
  static constexpr std::string_view name = "qwen3_4b_2507";
};
/// Qwen/Qwen3-14B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_14b : qwen3<qwen3_14b_config, W> {
  static constexpr std::string_view name = "qwen3_14b";
};
/// Qwen/Qwen3-32B with matrices of codec W.
template <dtype W = dtype::bf16>
struct qwen3_32b : qwen3<qwen3_32b_config, W> {
  static constexpr std::string_view name = "qwen3_32b";
};

}  // namespace intaglio::models
