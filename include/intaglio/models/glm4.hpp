// SPDX-License-Identifier: MIT
// GLM-4 of April 2025: norms before and after each sublayer; half of the channels of q and k are rotated,
// neighbours together. Source: transformers, models/glm4. The sizes are not yet compared with the published
// config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::models {

/// The layers of a GLM-4, for a model type and for plans that are made at run time. q, k and v have biases where the
/// config says so.
template <dtype W, template <dtype, dtype> class FFN = graph::gated_ffn>
constexpr auto glm4_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | repeat(c.num_hidden_layers,
             residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                    | self_attention<W, input_type<W>, qk_norm::none, qkv_bias::added>{c}
                    | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size}
                    | rms_norm{"post_attention_norm.weight", c.rms_norm_eps})
           | residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps}
                    | FFN<W, graph::input_type<W>>{c.hidden_size, c.intermediate_size, c.hidden_act}
                    | linear<W>{"ffn_down.weight", c.intermediate_size, c.hidden_size}
                    | rms_norm{"post_ffw_norm.weight", c.rms_norm_eps}))
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding  @tparam FFN as for llama
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H,
          template <dtype, dtype> class FFN = graph::gated_ffn>
struct glm4 {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return glm4_graph<W, FFN>(c, H, D); }
};

/// zai-org/GLM-4-9B-0414
inline constexpr decoder_config glm_4_9b_config{.model_type = architecture::glm4,
                                                .hidden_size = 4096,
                                                .intermediate_size = 13'696,
                                                .num_hidden_layers = 40,
                                                .num_attention_heads = 32,
                                                .num_key_value_heads = 2,
                                                .head_dim = 128,
                                                .vocab_size = 151'552,
                                                .max_position_embeddings = 32'768,
                                                .rope_theta = 10'000.f,
                                                .rotary_dim = 64,
                                                .rms_norm_eps = 1e-5f,
                                                .hidden_act = activation::silu,
                                                .tie_word_embeddings = false};
/// zai-org/GLM-4-9B-0414 with matrices of codec W.
template <dtype W = dtype::bf16>
struct glm_4_9b : glm4<glm_4_9b_config, W> {
  static constexpr std::string_view name = "glm_4_9b";
};

}  // namespace intaglio::models
