// SPDX-License-Identifier: MIT
// Llama and Mistral: grouped-query attention and SiLU-gated units, each with a norm in front; windows and RoPE scaling
// by the config. Source: transformers, models/llama and models/mistral; values from the config.json of each published
// model. A named model is a template over the codec of its matrices: mistral_7b<dtype::q4_0>.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// The embedding, the blocks and the last norm of a Llama or a Mistral, for a model type and for plans that are made at
/// run time. With norms of the heads of q and k they make a Qwen3, with biases a Qwen2. Granite's
/// multipliers need no ops: x + m * f(norm(x)) is m * (y + f(norm(y))) for y = x / m, where the norm's epsilon is
/// divided by m^2. So the stream holds y.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::none,
          graph::qkv_bias Bias = graph::qkv_bias::none, dtype A = graph::input_type<W>>
constexpr auto llama_body(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  const float eps = c.rms_norm_eps / (c.residual_multiplier * c.residual_multiplier), own = c.projection_norm_eps;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   c.embedding_multiplier / c.residual_multiplier}
       | repeat(c.num_hidden_layers,
             residual(rms_norm{"attn_norm.weight", eps}
                    | self_attention<W, A, Norm, Bias>{c}
                    | linear<W, A>{"attn_output.weight", c.q_size(), c.hidden_size, {}, own})
           | residual(rms_norm{ffn_norm_of(c), eps}
                    | ffn_of<FFN<W, A>>(c)
                    | linear<W, A>{"ffn_down.weight", c.intermediate_size, c.hidden_size, {}, own}))
       | rms_norm{"output_norm.weight", eps, 1 / c.logits_scaling};
  // clang-format on
}

/// llama_body and the head, whose output are the logits of the vocabulary.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::none,
          graph::qkv_bias Bias = graph::qkv_bias::none, dtype A = graph::input_type<W>>
constexpr auto llama_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return llama_body<W, FFN, Norm, Bias, A>(c, embedding_type)
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of the inputs of products with weights W in a model with this config.
template <const decoder_config& c, dtype W>
inline constexpr dtype inputs_of = is_ternary(W) ? c.activation_type : dtype::f32;

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding; a tied head has the
/// embedding's type
/// @tparam FFN gated_ffn, or walk_ffn or sparse_walk<K>::ffn (graph/layers/walk_ffn.hpp), of which decode reads
/// features one by one
template <const decoder_config& c, dtype W = dtype::f16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct llama {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() {
    return llama_graph<W, FFN, graph::qk_norm::none, graph::qkv_bias::none, inputs_of<c, W>>(c, H, D);
  }
};

/// mistralai/Mistral-7B-Instruct-v0.1
inline constexpr decoder_config mistral_7b_v01_config{.model_type = architecture::llama,
                                                      .hidden_size = 4096,
                                                      .intermediate_size = 14'336,
                                                      .num_hidden_layers = 32,
                                                      .num_attention_heads = 32,
                                                      .num_key_value_heads = 8,
                                                      .head_dim = 128,
                                                      .vocab_size = 32'000,
                                                      .max_position_embeddings = 32'768,
                                                      .rope_theta = 10'000.f,
                                                      .rms_norm_eps = 1e-5f,
                                                      .hidden_act = activation::silu,
                                                      .tie_word_embeddings = false,
                                                      .sliding_window = 4096};
/// mistralai/Mistral-7B-Instruct-v0.1 with matrices of codec W.
template <dtype W = dtype::f16>
struct mistral_7b_v01 : llama<mistral_7b_v01_config, W> {
  static constexpr std::string_view name = "mistral_7b_v01";
};
/// mistralai/Mistral-7B-Instruct-v0.2, which has no window
inline constexpr decoder_config mistral_7b_v02_config = [] {
  decoder_config c = mistral_7b_v01_config;
  c.rope_theta = 1'000'000.f;
  c.sliding_window = 0;
  return c;
}();
/// mistralai/Mistral-7B-Instruct-v0.2 with matrices of codec W.
template <dtype W = dtype::f16>
struct mistral_7b : llama<mistral_7b_v02_config, W> {
  static constexpr std::string_view name = "mistral_7b";
};
/// mistralai/Mistral-7B-Instruct-v0.3
inline constexpr decoder_config mistral_7b_v03_config = [] {
  decoder_config c = mistral_7b_v02_config;
  c.vocab_size = 32'768;
  return c;
}();
/// mistralai/Mistral-7B-Instruct-v0.3 with matrices of codec W.
template <dtype W = dtype::f16>
struct mistral_7b_v03 : llama<mistral_7b_v03_config, W> {
  static constexpr std::string_view name = "mistral_7b_v03";
};
/// mistralai/Mistral-Nemo-Instruct-2407
inline constexpr decoder_config mistral_nemo_12b_config = [] {
  decoder_config c = mistral_7b_v02_config;
  c.hidden_size = 5120;
  c.num_hidden_layers = 40;
  c.vocab_size = 131'072;
  c.max_position_embeddings = 131'072;
  return c;
}();
/// mistralai/Mistral-Nemo-Instruct-2407 with matrices of codec W.
template <dtype W = dtype::f16>
struct mistral_nemo_12b : llama<mistral_nemo_12b_config, W> {
  static constexpr std::string_view name = "mistral_nemo_12b";
};
/// mistralai/Mistral-Small-24B-Instruct-2501
inline constexpr decoder_config mistral_small_24b_config = [] {
  decoder_config c = mistral_nemo_12b_config;
  c.intermediate_size = 32'768;
  c.max_position_embeddings = 32'768;
  c.rope_theta = 100'000'000.f;
  return c;
}();
/// mistralai/Mistral-Small-24B-Instruct-2501 with matrices of codec W.
template <dtype W = dtype::f16>
struct mistral_small_24b : llama<mistral_small_24b_config, W> {
  static constexpr std::string_view name = "mistral_small_24b";
};
/// meta-llama/Meta-Llama-3-8B-Instruct
inline constexpr decoder_config llama_3_8b_config{.model_type = architecture::llama,
                                                  .hidden_size = 4096,
                                                  .intermediate_size = 14'336,
                                                  .num_hidden_layers = 32,
                                                  .num_attention_heads = 32,
                                                  .num_key_value_heads = 8,
                                                  .head_dim = 128,
                                                  .vocab_size = 128'256,
                                                  .max_position_embeddings = 8192,
                                                  .rope_theta = 500'000.f,
                                                  .rms_norm_eps = 1e-5f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = false};
/// meta-llama/Meta-Llama-3-8B-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct llama_3_8b : llama<llama_3_8b_config, W> {
  static constexpr std::string_view name = "llama_3_8b";
};
/// meta-llama/Llama-3.1-8B-Instruct
inline constexpr decoder_config llama_31_8b_config = [] {
  decoder_config c = llama_3_8b_config;
  c.max_position_embeddings = 131'072;
  c.rope_scaling = {rope_type::llama3, 8.f, 1.f, 4.f, 8192};
  return c;
}();
/// meta-llama/Llama-3.1-8B-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct llama_31_8b : llama<llama_31_8b_config, W> {
  static constexpr std::string_view name = "llama_31_8b";
};
/// meta-llama/Llama-3.3-70B-Instruct, and meta-llama/Llama-3.1-70B-Instruct
inline constexpr decoder_config llama_33_70b_config = [] {
  decoder_config c = llama_31_8b_config;
  c.hidden_size = 8192;
  c.intermediate_size = 28'672;
  c.num_hidden_layers = 80;
  c.num_attention_heads = 64;
  return c;
}();
/// meta-llama/Llama-3.3-70B-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct llama_33_70b : llama<llama_33_70b_config, W> {
  static constexpr std::string_view name = "llama_33_70b";
};
/// meta-llama/Llama-3.2-1B-Instruct
inline constexpr decoder_config llama_32_1b_config{.model_type = architecture::llama,
                                                   .hidden_size = 2048,
                                                   .intermediate_size = 8192,
                                                   .num_hidden_layers = 16,
                                                   .num_attention_heads = 32,
                                                   .num_key_value_heads = 8,
                                                   .head_dim = 64,
                                                   .vocab_size = 128'256,
                                                   .max_position_embeddings = 131'072,
                                                   .rope_theta = 500'000.f,
                                                   .rope_scaling = {rope_type::llama3, 32.f, 1.f, 4.f, 8192},
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = true};
/// meta-llama/Llama-3.2-1B-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct llama_32_1b : llama<llama_32_1b_config, W> {
  static constexpr std::string_view name = "llama_32_1b";
};
/// meta-llama/Llama-3.2-3B-Instruct
inline constexpr decoder_config llama_32_3b_config = [] {
  decoder_config c = llama_32_1b_config;
  c.hidden_size = 3072;
  c.num_hidden_layers = 28;
  c.num_attention_heads = 24;
  c.head_dim = 128;
  return c;
}();
/// meta-llama/Llama-3.2-3B-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct llama_32_3b : llama<llama_32_3b_config, W> {
  static constexpr std::string_view name = "llama_32_3b";
};
/// TinyLlama/TinyLlama-1.1B-Chat-v1.0
inline constexpr decoder_config tinyllama_11b_config{.model_type = architecture::llama,
                                                     .hidden_size = 2048,
                                                     .intermediate_size = 5632,
                                                     .num_hidden_layers = 22,
                                                     .num_attention_heads = 32,
                                                     .num_key_value_heads = 4,
                                                     .head_dim = 64,
                                                     .vocab_size = 32'000,
                                                     .max_position_embeddings = 2048,
                                                     .rope_theta = 10'000.f,
                                                     .rms_norm_eps = 1e-5f,
                                                     .hidden_act = activation::silu,
                                                     .tie_word_embeddings = false};
/// TinyLlama/TinyLlama-1.1B-Chat-v1.0 with matrices of codec W.
template <dtype W = dtype::f16>
struct tinyllama_11b : llama<tinyllama_11b_config, W> {
  static constexpr std::string_view name = "tinyllama_11b";
};
/// HuggingFaceTB/SmolLM2-135M-Instruct
inline constexpr decoder_config smollm2_135m_config{.model_type = architecture::llama,
                                                    .hidden_size = 576,
                                                    .intermediate_size = 1536,
                                                    .num_hidden_layers = 30,
                                                    .num_attention_heads = 9,
                                                    .num_key_value_heads = 3,
                                                    .head_dim = 64,
                                                    .vocab_size = 49'152,
                                                    .max_position_embeddings = 8192,
                                                    .rope_theta = 100'000.f,
                                                    .rms_norm_eps = 1e-5f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = true};
/// HuggingFaceTB/SmolLM2-135M-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct smollm2_135m : llama<smollm2_135m_config, W> {
  static constexpr std::string_view name = "smollm2_135m";
};
/// HuggingFaceTB/SmolLM2-360M-Instruct
inline constexpr decoder_config smollm2_360m_config = [] {
  decoder_config c = smollm2_135m_config;
  c.hidden_size = 960;
  c.intermediate_size = 2560;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 15;
  c.num_key_value_heads = 5;
  return c;
}();
/// HuggingFaceTB/SmolLM2-360M-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct smollm2_360m : llama<smollm2_360m_config, W> {
  static constexpr std::string_view name = "smollm2_360m";
};
/// HuggingFaceTB/SmolLM2-1.7B-Instruct
inline constexpr decoder_config smollm2_17b_config = [] {
  decoder_config c = smollm2_135m_config;
  c.hidden_size = 2048;
  c.intermediate_size = 8192;
  c.num_hidden_layers = 24;
  c.num_attention_heads = 32;
  c.num_key_value_heads = 32;
  c.rope_theta = 130'000.f;
  return c;
}();
/// HuggingFaceTB/SmolLM2-1.7B-Instruct with matrices of codec W.
template <dtype W = dtype::f16>
struct smollm2_17b : llama<smollm2_17b_config, W> {
  static constexpr std::string_view name = "smollm2_17b";
};
/// karpathy/tinyllamas, stories260K
inline constexpr decoder_config stories260k_config{.model_type = architecture::llama,
                                                   .hidden_size = 64,
                                                   .intermediate_size = 172,
                                                   .num_hidden_layers = 5,
                                                   .num_attention_heads = 8,
                                                   .num_key_value_heads = 4,
                                                   .head_dim = 8,
                                                   .vocab_size = 512,
                                                   .max_position_embeddings = 512,
                                                   .rope_theta = 10'000.f,
                                                   .rms_norm_eps = 1e-5f,
                                                   .hidden_act = activation::silu,
                                                   .tie_word_embeddings = true};
/// karpathy/tinyllamas with matrices of codec W.
template <dtype W = dtype::f16>
struct stories260k : llama<stories260k_config, W> {
  static constexpr std::string_view name = "stories260k";
};

}  // namespace intaglio::models
