// SPDX-License-Identifier: MIT
// Gemma 3, text: scaled embeddings, norms before and after each sublayer, norms of q and k, five windowed layers
// for each layer that sees everything. Norm weights are held as 1 + w, as in GGUF. Source: transformers, models/gemma3;
// Gemma 3 Technical Report 2025.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/core/float16.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// The factor of Gemma's embedding, sqrt(hidden_size). transformers rounds it to the type of the embedding's weights,
/// so bf16 models were trained with a bf16 number (50.5 for 2560). That number is kept where the weights are held in
/// blocks.
constexpr float embedding_scale(std::uint32_t hidden_size, dtype embedding) {
  const float root = square_root(static_cast<float>(hidden_size));
  return embedding == dtype::f32 || embedding == dtype::f16 ? root : f32_from_bf16(bf16_from_f32(root));
}

/// A block of a Gemma 3 or, without norms of q and k, of a Gemma 2.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::rms,
          dtype A = graph::input_type<W>>
constexpr auto gemma3_block(const decoder_config& c, const graph::attention_reach& reach) {
  using namespace intaglio::graph;
  // clang-format off
  return residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                | self_attention<W, A, Norm>{c, reach}
                | linear<W, A>{"attn_output.weight", c.q_size(), c.hidden_size, {}, c.projection_norm_eps}
                | rms_norm{"post_attention_norm.weight", c.rms_norm_eps})
       | residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps}
                | ffn_of<FFN<W, A>>(c)
                | linear<W, A>{"ffn_down.weight", c.intermediate_size, c.hidden_size, {}, c.projection_norm_eps}
                | rms_norm{"post_ffw_norm.weight", c.rms_norm_eps});
  // clang-format on
}

/// The layers of a Gemma 3 or a Gemma 2, for a model type and for plans that are made at run time.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::rms,
          dtype A = graph::input_type<W>>
constexpr auto gemma3_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                     embedding_scale(c.hidden_size, embedding_type)}
       | repeat(c.num_hidden_layers, every(c.sliding_window_pattern, gemma3_block<W, FFN, Norm, A>(c, sliding(c)),
                                              gemma3_block<W, FFN, Norm, A>(c, full(c))))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type, c.final_logit_softcapping};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam D of the embedding and the head  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype D = graph::head_type(W, c.hidden_size),
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct gemma3 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() {
    return gemma3_graph < W, FFN, graph::qk_norm::rms, c.ternary ? c.activation_type : graph::input_type < W >> (c, D);
  }
};

/// google/gemma-3-270m-it
inline constexpr decoder_config gemma3_270m_config{.model_type = architecture::gemma3,
                                                   .hidden_size = 640,
                                                   .intermediate_size = 2048,
                                                   .num_hidden_layers = 18,
                                                   .num_attention_heads = 4,
                                                   .num_key_value_heads = 1,
                                                   .head_dim = 256,
                                                   .vocab_size = 262'144,
                                                   .max_position_embeddings = 32'768,
                                                   .rope_theta = 1'000'000.f,
                                                   .rms_norm_eps = 1e-6f,
                                                   .hidden_act = activation::gelu_tanh,
                                                   .sliding_window = 512,
                                                   .sliding_window_pattern = 6,
                                                   .rope_local_base_freq = 10'000.f};
/// google/gemma-3-270m-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3_270m : gemma3<gemma3_270m_config, W> {
  static constexpr std::string_view name = "gemma3_270m";
};
/// google/gemma-3-1b-it
inline constexpr decoder_config gemma3_1b_config{.model_type = architecture::gemma3,
                                                 .hidden_size = 1152,
                                                 .intermediate_size = 6912,
                                                 .num_hidden_layers = 26,
                                                 .num_attention_heads = 4,
                                                 .num_key_value_heads = 1,
                                                 .head_dim = 256,
                                                 .vocab_size = 262'144,
                                                 .max_position_embeddings = 32'768,
                                                 .rope_theta = 1'000'000.f,
                                                 .rms_norm_eps = 1e-6f,
                                                 .hidden_act = activation::gelu_tanh,
                                                 .sliding_window = 512,
                                                 .sliding_window_pattern = 6,
                                                 .rope_local_base_freq = 10'000.f};
/// google/gemma-3-1b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3_1b : gemma3<gemma3_1b_config, W> {
  static constexpr std::string_view name = "gemma3_1b";
};
/// google/gemma-3-4b-it, its text model
inline constexpr decoder_config gemma3_4b_config{.model_type = architecture::gemma3,
                                                 .hidden_size = 2560,
                                                 .intermediate_size = 10'240,
                                                 .num_hidden_layers = 34,
                                                 .num_attention_heads = 8,
                                                 .num_key_value_heads = 4,
                                                 .head_dim = 256,
                                                 .vocab_size = 262'208,
                                                 .max_position_embeddings = 131'072,
                                                 .rope_theta = 1'000'000.f,
                                                 .rope_scaling = {rope_type::linear, 8.f},
                                                 .rms_norm_eps = 1e-6f,
                                                 .hidden_act = activation::gelu_tanh,
                                                 .sliding_window = 1024,
                                                 .sliding_window_pattern = 6,
                                                 .rope_local_base_freq = 10'000.f};
/// google/gemma-3-4b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3_4b : gemma3<gemma3_4b_config, W> {
  static constexpr std::string_view name = "gemma3_4b";
};
/// google/gemma-3-12b-it, its text model
inline constexpr decoder_config gemma3_12b_config = [] {
  decoder_config c = gemma3_4b_config;
  c.hidden_size = 3840;
  c.intermediate_size = 15'360;
  c.num_hidden_layers = 48;
  c.num_attention_heads = 16;
  c.num_key_value_heads = 8;
  return c;
}();
/// google/gemma-3-12b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3_12b : gemma3<gemma3_12b_config, W> {
  static constexpr std::string_view name = "gemma3_12b";
};
/// google/gemma-3-27b-it, its text model
inline constexpr decoder_config gemma3_27b_config = [] {
  decoder_config c = gemma3_4b_config;
  c.hidden_size = 5376;
  c.intermediate_size = 21'504;
  c.num_hidden_layers = 62;
  c.num_attention_heads = 32;
  c.num_key_value_heads = 16;
  c.head_dim = 128;
  c.query_pre_attn_scalar = 168;
  return c;
}();
/// google/gemma-3-27b-it with matrices of codec W.
template <dtype W = dtype::bf16>
struct gemma3_27b : gemma3<gemma3_27b_config, W> {
  static constexpr std::string_view name = "gemma3_27b";
};

}  // namespace intaglio::models
