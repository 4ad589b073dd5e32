// SPDX-License-Identifier: MIT
// OLMo 2: the sublayers of a block read the stream unnormalised and have norms behind them; q and k are normalised over
// all heads at once. Source: transformers, models/olmo2; OLMo 2 report 2025 ("2 OLMo 2 Furious"); values from the
// published config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// A block with norms behind its sublayers, of an OLMo 2 or, with norms of heads, of an EXAONE 4.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::rms_all>
constexpr auto olmo2_block(const decoder_config& c, const graph::attention_reach& reach) {
  using namespace intaglio::graph;
  // clang-format off
  return residual(self_attention<W, input_type<W>, Norm>{c, reach}
                | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size}
                | rms_norm{"post_attention_norm.weight", c.rms_norm_eps})
       | residual(FFN<W, graph::input_type<W>>{c.hidden_size, c.intermediate_size, c.hidden_act}
                | linear<W>{"ffn_down.weight", c.intermediate_size, c.hidden_size}
                | rms_norm{"post_ffw_norm.weight", c.rms_norm_eps});
  // clang-format on
}

/// The layers of an OLMo 2 or, with norms of heads, of an EXAONE 4 without windows, for a model type and for plans that
/// are made at run time.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::rms_all>
constexpr auto olmo2_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers, olmo2_block<W, FFN, Norm>(c, full(c)))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct olmo2 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return olmo2_graph<W, FFN>(c, H, D); }
};

/// allenai/OLMo-2-0425-1B
inline constexpr decoder_config olmo2_1b_config{.model_type = architecture::olmo2,
                                                .hidden_size = 2048,
                                                .intermediate_size = 8192,
                                                .num_hidden_layers = 16,
                                                .num_attention_heads = 16,
                                                .num_key_value_heads = 16,
                                                .head_dim = 128,
                                                .vocab_size = 100'352,
                                                .max_position_embeddings = 4096,
                                                .rope_theta = 500'000.f,
                                                .rms_norm_eps = 1e-6f,
                                                .hidden_act = activation::silu,
                                                .tie_word_embeddings = false};
/// allenai/OLMo-2-1124-7B
inline constexpr decoder_config olmo2_7b_config = [] {
  decoder_config c = olmo2_1b_config;
  c.hidden_size = 4096;
  c.intermediate_size = 11'008;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 32;
  c.num_key_value_heads = 32;
  return c;
}();
/// allenai/OLMo-2-1124-13B
inline constexpr decoder_config olmo2_13b_config = [] {
  decoder_config c = olmo2_1b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 13'824;
  c.num_hidden_layers = 40;
  c.num_attention_heads = 40;
  c.num_key_value_heads = 40;
  return c;
}();
/// allenai/OLMo-2-0325-32B
inline constexpr decoder_config olmo2_32b_config = [] {
  decoder_config c = olmo2_13b_config;
  c.intermediate_size = 27'648;
  c.num_hidden_layers = 64;
  c.num_key_value_heads = 8;
  return c;
}();
/// allenai/OLMo-2-0425-1B with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo2_1b : olmo2<olmo2_1b_config, W> {
  static constexpr std::string_view name = "olmo2_1b";
};
/// allenai/OLMo-2-1124-7B with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo2_7b : olmo2<olmo2_7b_config, W> {
  static constexpr std::string_view name = "olmo2_7b";
};
/// allenai/OLMo-2-1124-13B with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo2_13b : olmo2<olmo2_13b_config, W> {
  static constexpr std::string_view name = "olmo2_13b";
};
/// allenai/OLMo-2-0325-32B with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo2_32b : olmo2<olmo2_32b_config, W> {
  static constexpr std::string_view name = "olmo2_32b";
};

}  // namespace intaglio::models
