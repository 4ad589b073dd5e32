// SPDX-License-Identifier: MIT
// Latent attention (MLA): keys and values of all heads are made from one latent vector of a token, which alone is
// cached.
#pragma once

#include "intaglio/core/family.hpp"
#include "intaglio/core/square_root.hpp"
#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// Multi-head latent attention in its absorbed form, without its output projection. With the latent vector
/// c = rms_norm(Wc x), every head reads the key [c; rope(Wkr x)] and the value c. The query of head h is
/// [K_h Wqn_h x; rope(Wqr_h x)], and its result is V_h (softmax(q k^T * scale) c). Tensors attn_q_nope, attn_q_rope,
/// attn_kv_latent, attn_k_rope, attn_kv_a_norm, attn_k_b (K of all heads) and attn_v_b (V of all heads). With
/// q_lora_rank the first two read rms_norm(Wa x); tensors attn_q_a and attn_q_a_norm.
/// @shape  x: [tokens, hidden_size]; out: [tokens, num_attention_heads * v_head_dim] f32
/// @error  does not fit: a latent vector whose width is no multiple of 64; no rotated channels
/// @source DeepSeek-AI 2024 (DeepSeek-V2), section 2.1; transformers, models/deepseek_v3
template <dtype W>
struct latent_attention {
  std::uint32_t hidden_size, num_attention_heads, head_dim;  ///< config.json's
  std::uint32_t q_lora_rank, kv_lora_rank, v_head_dim;       ///< config.json's
  std::uint32_t rotated, unrotated;                          ///< channels of a head's query
  rope_parameters rope;                                      ///< of the rotated channels
  float scale, eps;                                          ///< factor of scores; epsilon of the norms

  /// Latent attention of a model.
  constexpr latent_attention(const decoder_config& c)  // NOLINT: a config is what describes it
      : hidden_size(c.hidden_size), num_attention_heads(c.num_attention_heads), head_dim(c.head_dim),
        q_lora_rank(c.q_lora_rank), kv_lora_rank(c.kv_lora_rank), v_head_dim(c.v_head_dim), rotated(c.rotary_dim),
        unrotated(unrotated_dim(c)), rope(c.rope()),
        scale(c.attention_multiplier != 0 ? c.attention_multiplier : 1 / square_root(static_cast<float>(c.head_dim))),
        eps(c.rms_norm_eps) {
    rope.rotary_dim = 0;  // the rotated channels are a head of their own
  }

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    if (kv_lora_rank == 0 || kv_lora_rank % 64 != 0)
      t.fail("latent_attention", "kv_lora_rank in multiples of ", 64, "", kv_lora_rank);
    if (rotated == 0 || rotated % 8 != 0 || rotated >= head_dim || unrotated % 4 != 0)
      t.fail("latent_attention", "rotated channels in multiples of 8, fewer than head_dim ", head_dim, "", rotated);
    const std::uint32_t heads = num_attention_heads, joined = kv_lora_rank + rotated;
    const ir::value_id all = t.every_expert("attn_k_b", heads);
    const ir::value_id a = q_lora_rank == 0 ? x
                                            : t.rms_norm(t.matmul(x, "attn_q_a.weight", q_lora_rank, hidden_size, W),
                                                         "attn_q_a_norm.weight", eps);
    const std::uint32_t columns = q_lora_rank == 0 ? hidden_size : q_lora_rank;
    const ir::value_id first = t.matmul(a, "attn_q_nope.weight", heads * unrotated, columns, W);
    const ir::value_id last = t.matmul(a, "attn_q_rope.weight", heads * rotated, columns, W);
    const ir::value_id latent = t.matmul(x, "attn_kv_latent.weight", kv_lora_rank, hidden_size, W);
    const ir::value_id key = t.matmul(x, "attn_k_rope.weight", rotated, hidden_size, W);
    const ir::value_id absorbed = t.expert_matmul(first, all, "attn_k_b.weight", heads, kv_lora_rank, unrotated, W);
    const ir::value_id c = t.rms_norm(latent, "attn_kv_a_norm.weight", eps);
    const ir::value_id q = t.join(absorbed, t.rope(last, "attn_q_rope", rotated, rope), "attn_q", heads);
    const ir::value_id k = t.join(c, t.rope(key, "attn_k_rope", rotated, rope), "attn_k", 1);
    t.cache_write(k, c, 1, joined, 0, kv_lora_rank);
    const ir::value_id y = t.attention(q, heads, 1, joined, scale, 0, 0, {}, 0, kv_lora_rank);
    return t.expert_matmul(y, all, "attn_v_b.weight", heads, v_head_dim, kv_lora_rank, W);
  }
};

}  // namespace intaglio::graph
