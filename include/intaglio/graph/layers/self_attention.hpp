// SPDX-License-Identifier: MIT
// Grouped-query self-attention with rotary embedding and a KV cache, without its output projection.
#pragma once

#include "intaglio/core/family.hpp"
#include "intaglio/core/square_root.hpp"
#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// The positions that a layer's attention sees, and its rotary embedding.
struct attention_reach {
  rope_parameters rope;      ///< rotary embedding of q and k
  std::uint32_t window = 0;  ///< number of positions that a token sees, up to and including its own; 0: all
  std::uint32_t ahead = 0;   ///< positions of the pass after its own that a token sees; ir::all_ahead: all of them
};
/// Reach of a windowed layer, with the rotary base of windowed layers. A decoder sees the last sliding_window
/// positions. An encoder sees half of the window before a token and half of it after.
constexpr attention_reach sliding(const decoder_config& c) {
  const std::uint32_t half = c.sliding_window / 2;
  if (family_of(c.model_type).encoder) return {c.local_rope(), half + 1, half};
  return {c.local_rope(), c.sliding_window};
}
/// Reach of a layer that sees all positions. An encoder also sees those after a token.
constexpr attention_reach full(const decoder_config& c) {
  return {c.rope(), 0, family_of(c.model_type).encoder ? ir::all_ahead : 0};
}

/// Norms of q and k. rms: of every head separately, in front of the rotary embedding. rms_all: of all heads at once, in
/// front of it. rms_turned: of every head separately, after it.
enum class qk_norm : std::uint8_t { none, rms, rms_all, rms_turned };

/// Whether biases are added to q, k and v.
enum class qkv_bias : bool { none, added };

/// Whether each head's softmax has one more score, which is learned and whose value is 0.
enum class attention_sink : bool { none, learned };

/// Grouped-query attention: softmax(rope(Wq x) rope(Wk x)^T * query_pre_attn_scalar^-1/2) (Wv x), over the last
/// `window` positions of the cache and `ahead` positions after them in the pass. Tensors attn_q, attn_k, attn_v. With
/// qk_norm::rms and rms_turned also attn_q_norm and attn_k_norm, [head_dim]; with qk_norm::rms_all they are as wide as
/// q and k. With qkv_bias::added also attn_q.bias, attn_k.bias and attn_v.bias, f32, as wide as q, k and v. A config
/// whose use_qk_norm or attention_bias is false has no such tensors. Scores s become softcap * tanh(s / softcap) where
/// the config has attn_logit_softcapping. With attention_sink::learned each head's softmax has one more score, from
/// attn_sinks, [num_attention_heads].
/// @shape  x: [tokens, hidden_size]; out: [tokens, num_attention_heads * head_dim] f32
/// @error  does not fit: heads do not share kv heads evenly; head_dim is no multiple of 4
/// @source Ainslie et al. 2023 (GQA); Su et al. 2021 (RoPE, NeoX pairs); Beltagy et al. 2020 (windows); Gemma 3 report
/// 2025 (norms of q and k); Gemma 2 report 2024 (bounds of scores); Xiao et al. 2023 (sinks)
template <dtype W, dtype A = input_type<W>, qk_norm Norm = qk_norm::none, qkv_bias Bias = qkv_bias::none,
          attention_sink Sink = attention_sink::none>
struct self_attention {
  std::uint32_t hidden_size, num_attention_heads, num_key_value_heads, head_dim;  ///< config.json's
  attention_reach reach;                                                          ///< positions that the layer sees
  float scale, eps;     ///< factor of scores, 0: by head_dim; epsilon of the norms of q and k
  float softcap;        ///< bound of scores; 0: none
  bool normed, biased;  ///< whether the config has the norms and biases that the template names
  float norm_eps;       ///< epsilon of the norms attn_q_norm_in, attn_k_norm_in, attn_v_norm_in; 0: none

  /// Attention of a model whose layers are all of one kind.
  constexpr self_attention(const decoder_config& c)
      : self_attention(c, {c.rope(), c.sliding_window, full(c).ahead}) {}  // NOLINT: a config is what describes it
  /// Attention of one kind of layer.
  constexpr self_attention(const decoder_config& c, const attention_reach& r)
      : hidden_size(c.hidden_size), num_attention_heads(c.num_attention_heads),
        num_key_value_heads(c.num_key_value_heads), head_dim(c.head_dim), reach(r), scale(score_scale(c, r)),
        eps(c.rms_norm_eps), softcap(c.attn_logit_softcapping), normed(c.use_qk_norm), biased(c.attention_bias),
        norm_eps(c.projection_norm_eps) {
    if (all_turn(c)) reach.rope.scaling.attention_factor = 1;
  }

  /// Whether all channels of q and k are rotated. Then a factor of sines and cosines is a factor of scores, squared.
  static constexpr bool all_turn(const decoder_config& c) { return c.rotary_dim == 0 || c.rotary_dim == c.head_dim; }
  /// The factor of scores; 0: 1 / sqrt(head_dim).
  static constexpr float score_scale(const decoder_config& c, const attention_reach& r) {
    // A norm after the rotation removes a factor of sines and cosines again.
    const bool counts = all_turn(c) && Norm != qk_norm::rms_turned;
    const float factor = counts ? r.rope.scaling.attention_factor : 1, turned = factor * factor;
    if (c.attention_multiplier != 0) return c.attention_multiplier * turned;
    if (c.query_pre_attn_scalar == 0 && turned == 1) return 0;
    return turned / square_root(static_cast<float>(c.attention_scalar()));
  }

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = product_input<A>(t, x, "attn_q.weight", norm_eps);
    const auto own = [&](std::string_view w) { return norm_eps == 0 ? h : product_input<A>(t, x, w, norm_eps); };
    ir::value_id q = t.matmul(h, "attn_q.weight", num_attention_heads * head_dim, hidden_size, W);
    ir::value_id k = t.matmul(own("attn_k.weight"), "attn_k.weight", num_key_value_heads * head_dim, hidden_size, W);
    ir::value_id v = t.matmul(own("attn_v.weight"), "attn_v.weight", num_key_value_heads * head_dim, hidden_size, W);
    if (Bias == qkv_bias::added && biased) {
      q = t.bias(q, "attn_q.bias");
      k = t.bias(k, "attn_k.bias");
      v = t.bias(v, "attn_v.bias");
    }
    if (Norm == qk_norm::rms && normed) {
      q = t.head_norm(q, "attn_q_norm.weight", eps, head_dim);
      k = t.head_norm(k, "attn_k_norm.weight", eps, head_dim);
    }
    if constexpr (Norm == qk_norm::rms_all) {
      q = t.rms_norm(q, "attn_q_norm.weight", eps);
      k = t.rms_norm(k, "attn_k_norm.weight", eps);
    }
    q = t.rope(q, "attn_q", head_dim, reach.rope);
    k = t.rope(k, "attn_k", head_dim, reach.rope);
    if (Norm == qk_norm::rms_turned && normed) {
      q = t.head_norm(q, "attn_q_norm.weight", eps, head_dim);
      k = t.head_norm(k, "attn_k_norm.weight", eps, head_dim);
    }
    t.cache_write(k, v, num_key_value_heads, head_dim, reach.window);
    return t.attention(q, num_attention_heads, num_key_value_heads, head_dim, scale, reach.window, softcap,
                       Sink == attention_sink::learned ? "attn_sinks.weight" : "", reach.ahead);
  }
};

}  // namespace intaglio::graph
