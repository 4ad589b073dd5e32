// SPDX-License-Identifier: MIT
// AFMoE (Arcee Trinity): norms before and after each sublayer, attention with a gate, and GLM-4.5's mixtures
// after dense layers. Three of four layers have a window and a rotation; the fourth sees all positions and has no
// rotation. Source: transformers, models/afmoe; values from the published config.json.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/core/square_root.hpp"
#include "intaglio/graph/layers/delta_net.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/shared_expert.hpp"

namespace intaglio::models {

/// An FFN between two norms: a gated unit or, in layers that are not dense, shared(h) + mixture(h). Tensors ffn_gate,
/// ffn_up and ffn_down, or those of the mixture and ffn_gate_shexp, ffn_up_shexp and ffn_down_shexp.
/// @shape  h, out: [tokens, hidden_size] f32
template <dtype W>
struct afmoe_ffn {
  const decoder_config* config;  ///< of the model
  bool dense;                    ///< no experts; the unit is dense_intermediate_size wide

  constexpr ir::value_id forward(ir::trace& t, ir::value_id h) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const std::uint32_t hidden = c.hidden_size, shared = c.shared_expert_intermediate_size;
    if (dense)
      return (gated_ffn<W>{hidden, c.dense_intermediate_size, c.hidden_act} |
              linear<W>{"ffn_down.weight", c.dense_intermediate_size, hidden})
          .forward(t, h);
    const auto mixture = mixture_of<W>(c);
    if (shared == 0) return mixture.forward(t, h);
    const ir::value_id inner = gated_shared<W>{hidden, shared, c.hidden_act}.forward(t, h);
    const ir::value_id choice = mixture.choose(t, h);
    // Next to the choice, which it does not wait for.
    const ir::value_id its = t.matmul(inner, "ffn_down_shexp.weight", hidden, shared, W);
    return t.add(its, mixture.sum(t, mixture.experts.forward(t, h, choice), choice));
  }
};

/// What differs from layer to layer.
struct afmoe_kind {
  bool windowed;  ///< sees the last sliding_window positions, with a rotation
  bool dense;     ///< has one FFN, no experts
  friend constexpr bool operator==(const afmoe_kind&, const afmoe_kind&) = default;
};

/// The blocks of an AFMoE, of up to four kinds.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W>
struct afmoe_blocks {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    attention_reach standing = full(c);
    standing.rope.no_rope_interval = 1;
    const auto kinds = numbered_kinds<afmoe_kind>::of(c.num_hidden_layers, [&](std::uint32_t layer) {
      return afmoe_kind{c.is_windowed(layer), !c.has_experts(layer)};
    });
    return t.repeat_kinds(x, c.num_hidden_layers, kinds.pattern, kinds.count, [&](std::uint8_t kind, ir::value_id in) {
      const auto [windowed, dense] = kinds.traits[kind];
      // clang-format off
      return (residual(rms_norm{"attn_norm.weight", c.rms_norm_eps}
                     | gated_attention<W>{c, windowed ? sliding(c) : standing, "attn_gate.weight"}
                     | linear<W>{"attn_output.weight", c.q_size(), c.hidden_size}
                     | rms_norm{"post_attention_norm.weight", c.rms_norm_eps})
            | residual(rms_norm{"ffn_norm.weight", c.rms_norm_eps}
                     | afmoe_ffn<W>{&c, dense}
                     | rms_norm{"post_ffw_norm.weight", c.rms_norm_eps}))
          .forward(t, in);
      // clang-format on
    });
  }
};

/// The layers of an AFMoE, for a model type and for plans that are made at run time. Rows of the embedding have the
/// factor sqrt(hidden_size). `c` must outlive the layers.
template <dtype W>
constexpr auto afmoe_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type,
                   square_root(static_cast<float>(c.hidden_size))}
       | afmoe_blocks<W>{&c}
       | rms_norm{"output_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct afmoe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return afmoe_graph<W>(c, H, D); }
};

/// arcee-ai/Trinity-Nano-Preview
inline constexpr decoder_config trinity_nano_config{.model_type = architecture::afmoe,
                                                    .hidden_size = 1024,
                                                    .intermediate_size = 256,
                                                    .num_hidden_layers = 56,
                                                    .num_attention_heads = 8,
                                                    .num_key_value_heads = 2,
                                                    .head_dim = 128,
                                                    .vocab_size = 200'192,
                                                    .max_position_embeddings = 131'072,
                                                    .rope_theta = 10'000.f,
                                                    .rms_norm_eps = 1e-5f,
                                                    .hidden_act = activation::silu,
                                                    .tie_word_embeddings = false,
                                                    .sliding_window = 2048,
                                                    .sliding_window_pattern = 4,
                                                    .num_local_experts = 128,
                                                    .num_experts_per_tok = 8,
                                                    .shared_expert_intermediate_size = 256,
                                                    .routed_scaling_factor = 2.826f,
                                                    .use_expert_bias = true,
                                                    .num_dense_layers = 2,
                                                    .dense_intermediate_size = 3072};
/// arcee-ai/Trinity-Mini
inline constexpr decoder_config trinity_mini_config = [] {
  decoder_config c = trinity_nano_config;
  c.hidden_size = 2048;
  c.intermediate_size = c.shared_expert_intermediate_size = 1024;
  c.num_hidden_layers = 32;
  c.num_attention_heads = 32;
  c.num_key_value_heads = 4;
  c.dense_intermediate_size = 6144;
  return c;
}();
/// arcee-ai/Trinity-Nano-Preview with matrices of codec W.
template <dtype W = dtype::bf16>
struct trinity_nano : afmoe<trinity_nano_config, W> {
  static constexpr std::string_view name = "trinity_nano";
};
/// arcee-ai/Trinity-Mini with matrices of codec W.
template <dtype W = dtype::bf16>
struct trinity_mini : afmoe<trinity_mini_config, W> {
  static constexpr std::string_view name = "trinity_mini";
};

}  // namespace intaglio::models
