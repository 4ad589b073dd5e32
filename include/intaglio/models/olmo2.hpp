// SPDX-License-Identifier: MIT
// OLMo 2: the sublayers of a block read the stream unnormalised and have norms after them; q and k are normalised over
// all heads at once. OLMo 3 has windows in three of four layers, whose rotation is not scaled. Source: transformers,
// models/olmo2, olmo3; OLMo 2 report 2025 ("2 OLMo 2 Furious"); values from the published config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// A block with norms after its sublayers, of an OLMo 2 or, with norms of heads, of an EXAONE 4.
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

/// The layers of an OLMo 3, or of an EXAONE 4 with windows, for a model type and for plans that are made at run time.
/// @param whole reach of the layers that see all positions
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn, graph::qk_norm Norm = graph::qk_norm::rms_all>
constexpr auto olmo3_graph(const decoder_config& c, const graph::attention_reach& whole, dtype head,
                           dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers, every(c.sliding_window_pattern, olmo2_block<W, FFN, Norm>(c, sliding(c)),
                                              olmo2_block<W, FFN, Norm>(c, whole)))
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

  static constexpr auto graph() {
    if constexpr (c.sliding_window == 0) return olmo2_graph<W, FFN>(c, H, D);
    else return olmo3_graph<W, FFN>(c, intaglio::graph::full(c), H, D);
  }
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
/// allenai/Olmo-3-1025-7B
inline constexpr decoder_config olmo3_7b_config = [] {
  decoder_config c = olmo2_7b_config;
  c.vocab_size = 100'278;
  c.max_position_embeddings = 65'536;
  c.rope_scaling = {rope_type::yarn, 8.f, 1.f, 32.f, 8192, 1.2079441541679836f};
  c.sliding_window = 4096;
  c.sliding_window_pattern = 4;
  c.rope_local_base_freq = c.rope_theta;
  return c;
}();
/// allenai/Olmo-3-1125-32B
inline constexpr decoder_config olmo3_32b_config = [] {
  decoder_config c = olmo3_7b_config;
  c.hidden_size = 5120;
  c.intermediate_size = 27'648;
  c.num_hidden_layers = 64;
  c.num_attention_heads = 40;
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
/// allenai/Olmo-3-1025-7B with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo3_7b : olmo2<olmo3_7b_config, W> {
  static constexpr std::string_view name = "olmo3_7b";
};
/// allenai/Olmo-3-1125-32B with matrices of codec W.
template <dtype W = dtype::bf16>
struct olmo3_32b : olmo2<olmo3_32b_config, W> {
  static constexpr std::string_view name = "olmo3_32b";
};

}  // namespace intaglio::models
