// SPDX-License-Identifier: MIT
// LFM2 with experts: LFM2's layers, whose FFNs are mixtures after some dense layers. The weight of an expert is a
// logistic of its own score. Source: transformers, models/lfm2_moe; values from the published config.json.
#pragma once

#include "intaglio/graph/layers/shared_expert.hpp"
#include "intaglio/models/lfm2.hpp"

namespace intaglio::models {

/// The traits in which layers differ.
struct lfm2moe_kind {
  bool recurrent = false;  ///< a short convolution instead of attention
  bool dense = false;      ///< an FFN without experts
  friend constexpr bool operator==(const lfm2moe_kind&, const lfm2moe_kind&) = default;
};

/// The blocks of an LFM2 with experts, of up to four kinds.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W>
struct lfm2moe_blocks {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    const auto kinds = numbered_kinds<lfm2moe_kind>::of(c.num_hidden_layers, [&](std::uint32_t layer) {
      return lfm2moe_kind{c.recurrent_layers.has(layer), !c.has_experts(layer)};
    });
    const rms_norm norm{"attn_norm.weight", c.rms_norm_eps};
    return t.repeat_kinds(x, c.num_hidden_layers, kinds.pattern, kinds.count, [&](std::uint8_t kind, ir::value_id in) {
      const auto [recurrent, dense] = kinds.traits[kind];
      const ffn_or_mixture<W> ffn{&c, c.rms_norm_eps, dense};
      if (recurrent)
        return (residual(norm | short_conv<W>{c} |
                         linear<W>{"shortconv.out_proj.weight", c.hidden_size, c.hidden_size}) |
                ffn)
            .forward(t, in);
      return (residual(norm | self_attention<W, input_type<W>, qk_norm::rms>{c} |
                       linear<W>{"attn_output.weight", c.q_size(), c.hidden_size}) |
              ffn)
          .forward(t, in);
    });
  }
};

/// The layers of an LFM2 with experts, for a model type and for plans that are made at run time. `c` must outlive them.
template <dtype W>
constexpr auto lfm2moe_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return embedding{"token_embd.weight", c.vocab_size, c.hidden_size, embedding_type}
       | lfm2moe_blocks<W>{&c}
       | rms_norm{"token_embd_norm.weight", c.rms_norm_eps}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct lfm2moe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return lfm2moe_graph<W>(c, H, D); }
};

/// LiquidAI/LFM2-8B-A1B
inline constexpr decoder_config lfm2_8b_a1b_config = [] {
  decoder_config c = lfm2_12b_config;
  c.model_type = architecture::lfm2moe;
  c.intermediate_size = 1792;
  c.num_hidden_layers = 24;
  c.recurrent_layers = layer_set::all_but(24, 2, 6, 10, 14, 18, 21);
  c.num_local_experts = 32;
  c.num_experts_per_tok = 4;
  c.use_expert_bias = true;
  c.num_dense_layers = 2;
  c.dense_intermediate_size = 7168;
  return c;
}();
/// LiquidAI/LFM2-8B-A1B with matrices of codec W.
template <dtype W = dtype::bf16>
struct lfm2_8b_a1b : lfm2moe<lfm2_8b_a1b_config, W> {
  static constexpr std::string_view name = "lfm2_8b_a1b";
};

}  // namespace intaglio::models
