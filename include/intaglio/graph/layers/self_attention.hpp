// SPDX-License-Identifier: MIT
// Causal grouped-query self-attention with rotary embedding and a KV cache, without its output projection.
#pragma once

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// softmax(rope(Wq x) rope(Wk x)^T / sqrt(head_dim)) (Wv x), causal over the cache. Tensors attn_q, attn_k, attn_v.
/// @shape  x: [tokens, hidden_size]; out: [tokens, num_attention_heads * head_dim] f32
/// @error  does not fit: heads do not share kv heads evenly; head_dim is no multiple of 4
/// @source Ainslie et al. 2023 (GQA); Su et al. 2021 (RoPE, NeoX pairs)
template <dtype W, dtype A = input_type<W>>
struct self_attention {
  std::uint32_t hidden_size, num_attention_heads, num_key_value_heads, head_dim;
  float rope_theta;

  constexpr self_attention(const decoder_config& c)  // NOLINT: a config is what describes it
      : hidden_size(c.hidden_size), num_attention_heads(c.num_attention_heads), num_key_value_heads(c.num_key_value_heads),
        head_dim(c.head_dim), rope_theta(c.rope_theta) {}

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = activations<A>(t, x, "attn_q.weight");
    ir::value_id q = t.matmul(h, "attn_q.weight", num_attention_heads * head_dim, hidden_size, W);
    ir::value_id k = t.matmul(h, "attn_k.weight", num_key_value_heads * head_dim, hidden_size, W);
    const ir::value_id v = t.matmul(h, "attn_v.weight", num_key_value_heads * head_dim, hidden_size, W);
    q = t.rope(q, "attn_q", head_dim, rope_theta);
    k = t.rope(k, "attn_k", head_dim, rope_theta);
    t.cache_write(k, v, num_key_value_heads, head_dim);
    return t.attention(q, num_attention_heads, num_key_value_heads, head_dim);
  }
};

}  // namespace intaglio::graph
