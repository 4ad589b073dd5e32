// SPDX-License-Identifier: MIT
// Decoders whose norms are LayerNorms. The family says whether norms and matrices have biases, whether FFNs have a
// gate, and whether attention and FFN of a layer are added one after the other or beside each other. Source:
// transformers, models/cohere, cohere2, starcoder2, stablelm, phi, nemotron, gpt_neox, falcon, gpt2, gpt_bigcode and
// olmo.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"

#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/layer_norm.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/graph/layers/text_embedding.hpp"
#include "intaglio/graph/layers/ungated_ffn.hpp"

namespace intaglio::models {

/// The blocks of a decoder with LayerNorms: y = x + attention(norm(x)), then y + ffn(norm(y)). With
/// `family::parallel` the FFN reads a norm of x, which with `family::joint_norm` is attention's.
/// @shape  x, out: [tokens, hidden_size] f32
template <dtype W>
struct layer_norm_blocks {
  const decoder_config* config;  ///< of the model

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const auto of = [&](const attention_reach& reach) {
      return [this, &t, reach](ir::value_id in) { return block(t, in, reach); };
    };
    const std::uint32_t period = c.sliding_window_pattern;
    if (period == 0) return t.repeat(x, c.num_hidden_layers, of({c.rope(), c.sliding_window}));
    layer_pattern pattern{period};
    if (period <= layer_pattern::max_period) pattern.blocks[period - 1] = 1;
    attention_reach all = full(c);
    if (family_of(c.model_type).globals_stand) all.rope.no_rope_interval = 1;
    return t.repeat(x, c.num_hidden_layers, pattern, of(sliding(c)), of(all));
  }

 private:
  constexpr const family& facts() const { return family_of(config->model_type); }
  constexpr ir::value_id normed(ir::trace& t, ir::value_id x, std::string_view weight, std::string_view bias) const {
    return t.layer_norm(x, weight, facts().bare_norms ? "" : bias, config->rms_norm_eps);
  }
  constexpr ir::value_id block(ir::trace& t, ir::value_id x, const graph::attention_reach& reach) const {
    const ir::value_id h = normed(t, x, "attn_norm.weight", "attn_norm.bias");
    const ir::value_id own = facts().joint_norm ? h : facts().parallel ? ffn_norm(t, x) : ir::none;
    const ir::value_id y = t.add(x, attention(t, h, reach));
    return t.add(y, ffn(t, facts().parallel ? own : ffn_norm(t, y)));
  }
  constexpr ir::value_id ffn_norm(ir::trace& t, ir::value_id x) const {
    return normed(t, x, "ffn_norm.weight", "ffn_norm.bias");
  }
  constexpr ir::value_id attention(ir::trace& t, ir::value_id h, const graph::attention_reach& reach) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const ir::value_id y = has_qkv_biases(c)
                               ? self_attention<W, dtype::f32, qk_norm::none, qkv_bias::added>{c, reach}.forward(t, h)
                               : self_attention<W, dtype::f32>{c, reach}.forward(t, h);
    return linear<W, dtype::f32>{"attn_output.weight", c.q_size(), c.hidden_size,
                                 facts().biases ? "attn_output.bias" : ""}
        .forward(t, y);
  }
  constexpr ir::value_id ffn(ir::trace& t, ir::value_id h) const {
    using namespace intaglio::graph;
    const decoder_config& c = *config;
    const bool biased = facts().biases;
    const ir::value_id y =
        facts().ungated
            ? ungated_ffn<W, dtype::f32>{c.hidden_size, c.intermediate_size, c.hidden_act, biased ? "ffn_up.bias" : ""}
                  .forward(t, h)
            : gated_ffn<W, dtype::f32>{c.hidden_size, c.intermediate_size, c.hidden_act}.forward(t, h);
    return linear<W, dtype::f32>{"ffn_down.weight", c.intermediate_size, c.hidden_size, biased ? "ffn_down.bias" : ""}
        .forward(t, y);
  }
};

/// The layers of a decoder with LayerNorms, for a model type and for plans that are made at run time. `c` must outlive
/// them. logits_scaling divides the last norm's weight and bias.
template <dtype W>
constexpr auto layer_norm_decoder_graph(const decoder_config& c, dtype head, dtype embedding_type) {
  using namespace intaglio::graph;
  const family& of = family_of(c.model_type);
  // clang-format off
  return text_embedding{c, embedding_type}
       | layer_norm_blocks<W>{&c}
       | layer_norm{"output_norm.weight", of.bare_norms ? "" : "output_norm.bias", c.rms_norm_eps, 1 / c.logits_scaling}
       | lm_head{c.tie_word_embeddings ? "token_embd.weight" : "output.weight", c.vocab_size, c.hidden_size,
                 c.tie_word_embeddings ? embedding_type : head, 0, of.head_bias ? "output.bias" : ""};
  // clang-format on
}

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::f16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct layer_norm_decoder {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return layer_norm_decoder_graph<W>(c, H, D); }
};

}  // namespace intaglio::models
