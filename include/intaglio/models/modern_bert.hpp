// SPDX-License-Identifier: MIT
// ModernBERT: an encoder with rotary embedding, LayerNorms without biases in front of the sublayers of a block, gated
// FFNs and no biases. Layer 0 and every third layer after it see all positions. The other layers see a window on both
// sides of a token and have their own rotary base. Source: Warner et al. 2024; transformers, models/modernbert; values
// from the config.json of each published model.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/layer_norm.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/text_embedding.hpp"

namespace intaglio::models {

/// The blocks of a ModernBERT. Attention of layer 0 reads the embedding, which is already normalised.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W>
struct modern_bert_blocks {
  const decoder_config* config;  ///< of the model

  /// The traits in which layers differ.
  struct kind {
    bool windowed = false, first = false;  ///< whether it sees a window; whether it is layer 0
    friend constexpr bool operator==(const kind&, const kind&) = default;
  };

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    if (c.num_hidden_layers > layer_pattern::max_period) {
      t.fail("repeat", "at most ", layer_pattern::max_period, " layers", c.num_hidden_layers);
      return x;
    }
    const auto kinds = numbered_kinds<kind>::of(c.num_hidden_layers, [&](std::uint32_t layer) {
      return kind{c.is_windowed(layer), layer == 0};
    });
    const auto ffn = residual(layer_norm{"ffn_norm.weight", "", c.rms_norm_eps} |
                              gated_ffn<W, dtype::f32>{c.hidden_size, c.intermediate_size, c.hidden_act} |
                              linear<W, dtype::f32>{"ffn_down.weight", c.intermediate_size, c.hidden_size});
    return t.repeat_kinds(
        x, c.num_hidden_layers, kinds.pattern, kinds.count, [&](std::uint8_t number, ir::value_id in) {
          const kind& its = kinds.traits[number];
          const auto attention = self_attention<W, dtype::f32>{c, its.windowed ? sliding(c) : full(c)} |
                                 linear<W, dtype::f32>{"attn_output.weight", c.q_size(), c.hidden_size};
          if (its.first) return (residual(attention) | ffn).forward(t, in);
          return (residual(layer_norm{"attn_norm.weight", "", c.rms_norm_eps} | attention) | ffn).forward(t, in);
        });
  }
};

/// The layers of a ModernBERT, for a model type and for plans that are made at run time. `c` must outlive them.
template <dtype W>
constexpr auto modern_bert_graph(const decoder_config& c, dtype embedding_type) {
  using namespace intaglio::graph;
  // clang-format off
  return text_embedding{c, embedding_type}
       | layer_norm{"token_embd_norm.weight", "", c.rms_norm_eps}
       | modern_bert_blocks<W>{&c}
       | layer_norm{"output_norm.weight", "", c.rms_norm_eps};
  // clang-format on
}

/// The type of a model.  @tparam W of the products' weights  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::f16, dtype D = graph::head_type(W, c.hidden_size)>
struct modern_bert {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return modern_bert_graph<W>(c, D); }
};

/// answerdotai/ModernBERT-base, and Alibaba-NLP/gte-modernbert-base
inline constexpr decoder_config modernbert_base_config{.model_type = architecture::modern_bert,
                                                       .hidden_size = 768,
                                                       .intermediate_size = 1152,
                                                       .num_hidden_layers = 22,
                                                       .num_attention_heads = 12,
                                                       .num_key_value_heads = 12,
                                                       .head_dim = 64,
                                                       .vocab_size = 50'368,
                                                       .max_position_embeddings = 8192,
                                                       .rope_theta = 160'000.f,
                                                       .rms_norm_eps = 1e-5f,
                                                       .hidden_act = activation::gelu,
                                                       .sliding_window = 128,
                                                       .rope_local_base_freq = 10'000.f,
                                                       .full_attention_layers = layer_set::first_and_every(3, 22)};
/// answerdotai/ModernBERT-large
inline constexpr decoder_config modernbert_large_config = [] {
  decoder_config c = modernbert_base_config;
  c.hidden_size = 1024;
  c.intermediate_size = 2624;
  c.num_hidden_layers = 28;
  c.num_attention_heads = c.num_key_value_heads = 16;
  c.full_attention_layers = layer_set::first_and_every(3, 28);
  return c;
}();
/// answerdotai/ModernBERT-base with matrices of codec W.
template <dtype W = dtype::f16>
struct modernbert_base : modern_bert<modernbert_base_config, W> {
  static constexpr std::string_view name = "modernbert_base";
};
/// answerdotai/ModernBERT-large with matrices of codec W.
template <dtype W = dtype::f16>
struct modernbert_large : modern_bert<modernbert_large_config, W> {
  static constexpr std::string_view name = "modernbert_large";
};

}  // namespace intaglio::models
