// SPDX-License-Identifier: MIT
// GLM-4.5: grouped-query attention with biases, half of whose channels are rotated, and mixtures with a shared expert,
// after some dense layers. The weight of an expert is a logistic of its own score. Layers that draft tokens
// (multi-token prediction) are not computed. Source: transformers, models/glm4_moe; values from the published
// config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/shared_expert.hpp"

namespace intaglio::models {

/// The blocks of a model whose layers with mixtures are after dense layers.
/// @shape  x, out: [tokens, hidden_size] f32
/// @tparam Attention a layer that is made of a config, without its output projection
template <dtype W, class Attention>
struct dense_first_blocks {
  const decoder_config* config;  ///< of the model
  std::uint32_t attended;        ///< width of what attention gives

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    const auto kinds =
        numbered_kinds<bool>::of(c.num_hidden_layers, [&](std::uint32_t layer) { return !c.has_experts(layer); });
    const auto attention = residual(rms_norm{"attn_norm.weight", c.rms_norm_eps} | Attention{c} |
                                    linear<W>{"attn_output.weight", attended, c.hidden_size});
    return t.repeat_kinds(x, c.num_hidden_layers, kinds.pattern, kinds.count, [&](std::uint8_t kind, ir::value_id in) {
      return (attention | ffn_or_mixture<W>{&c, c.rms_norm_eps, kinds.traits[kind], ffn_norm_of(c)}).forward(t, in);
    });
  }
};

/// The layers of a model whose layers with mixtures are after dense layers. `c` must outlive them.
/// @tparam Attention as for dense_first_blocks  @param attended width of what attention gives
template <dtype W, class Attention>
constexpr auto dense_first_graph(const decoder_config& c, std::uint32_t attended, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | dense_first_blocks<W, Attention>{&c, attended}
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The layers of a GLM-4.5, for a model type and for plans that are made at run time. Biases and norms of q and k are
/// there where the config says so. `c` must outlive the layers.
/// @tparam N norms of heads  @tparam B biases of q, k and v
template <dtype W, graph::qk_norm N = graph::qk_norm::rms, graph::qkv_bias B = graph::qkv_bias::added>
constexpr auto glm4moe_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  return dense_first_graph<W, graph::self_attention<W, graph::input_type<W>, N, B>>(c, c.q_size(), head,
                                                                                    embedding_type);
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct glm4moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return glm4moe_graph<W>(c, H, D); }
};

/// zai-org/GLM-4.5-Air
inline constexpr decoder_config glm_45_air_config{.model_type = architecture::glm4moe,
                                                  .hidden_size = 4096,
                                                  .intermediate_size = 1408,
                                                  .num_hidden_layers = 46,
                                                  .num_attention_heads = 96,
                                                  .num_key_value_heads = 8,
                                                  .head_dim = 128,
                                                  .vocab_size = 151'552,
                                                  .max_position_embeddings = 131'072,
                                                  .rope_theta = 1'000'000.f,
                                                  .rotary_dim = 64,
                                                  .rms_norm_eps = 1e-5f,
                                                  .hidden_act = activation::silu,
                                                  .tie_word_embeddings = false,
                                                  .num_local_experts = 128,
                                                  .num_experts_per_tok = 8,
                                                  .shared_expert_intermediate_size = 1408,
                                                  .use_expert_bias = true,
                                                  .num_dense_layers = 1,
                                                  .dense_intermediate_size = 10'944,
                                                  .use_qk_norm = false};
/// zai-org/GLM-4.5
inline constexpr decoder_config glm_45_config = [] {
  decoder_config c = glm_45_air_config;
  c.hidden_size = 5120;
  c.intermediate_size = c.shared_expert_intermediate_size = 1536;
  c.num_hidden_layers = 92;
  c.num_local_experts = 160;
  c.routed_scaling_factor = 2.5f;
  c.num_dense_layers = 3;
  c.dense_intermediate_size = 12'288;
  c.use_qk_norm = true;
  return c;
}();
/// zai-org/GLM-4.5-Air with matrices of codec W.
template <dtype W = dtype::bf16>
struct glm_45_air : glm4moe<glm_45_air_config, W> {
  static constexpr std::string_view name = "glm_45_air";
};
/// zai-org/GLM-4.5 with matrices of codec W.
template <dtype W = dtype::bf16>
struct glm_45 : glm4moe<glm_45_config, W> {
  static constexpr std::string_view name = "glm_45";
};

}  // namespace intaglio::models
