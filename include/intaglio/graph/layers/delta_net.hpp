// SPDX-License-Identifier: MIT
// The layers that replace attention in recurrent layers of Qwen3.5 and Qwen3-Next, and the gated attention of their
// other layers. Neither has its output projection here.
#pragma once

#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/self_attention.hpp"

namespace intaglio::graph {

/// Whether betas and alphas come from two products (apart) or from one, interleaved by key head (together).
enum class delta_gates : bool { apart, together };

/// The gated delta rule over silu(conv(W_qkv x)); its heads are normalised and multiplied by silu(W_z x). Tensors
/// attn_qkv, attn_gate (z), ssm_conv1d [qkv_size, conv_taps], ssm_beta and ssm_alpha or ssm_ba, ssm_a and ssm_dt.bias
/// [value_heads], ssm_norm [value_dim].
/// @shape  x: [tokens, hidden_size]; out: [tokens, value_size] f32
/// @error  does not fit: key heads do not share value heads evenly; widths that kernels do not take
/// @source Yang et al. 2024 (gated delta networks); transformers, models/qwen3_next
template <dtype W, delta_gates Gates, dtype A = input_type<W>>
struct delta_net {
  std::uint32_t hidden_size, conv_taps;  ///< config.json's; conv_taps is linear_conv_kernel_dim
  delta_net_config sizes;                ///< config.json's linear_*
  float eps;                             ///< of the norm

  /// Takes sizes and epsilon from a config.
  constexpr delta_net(const decoder_config& c)  // NOLINT: a config is what describes it
      : hidden_size(c.hidden_size), conv_taps(c.conv_taps), sizes(c.delta_net), eps(c.rms_norm_eps) {}

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = activations<A>(t, x, "attn_qkv.weight");
    const ir::value_id products = t.matmul(h, "attn_qkv.weight", sizes.qkv_size(), hidden_size, W);
    const ir::value_id z = t.matmul(h, "attn_gate.weight", sizes.value_size(), hidden_size, W);
    ir::value_id beta = ir::none, alpha = ir::none;
    if constexpr (Gates == delta_gates::together) {
      beta = alpha = t.matmul(h, "ssm_ba.weight", 2 * sizes.value_heads, hidden_size, W);
    } else {
      beta = t.matmul(h, "ssm_beta.weight", sizes.value_heads, hidden_size, W);
      alpha = t.matmul(h, "ssm_alpha.weight", sizes.value_heads, hidden_size, W);
    }
    const ir::value_id qkv = t.short_conv(products, "ssm_conv1d.weight", conv_taps, false);
    const ir::value_id y = t.delta_net(qkv, beta, alpha, "ssm_a", "ssm_dt.bias", sizes);
    return t.head_gate(y, z, "ssm_norm.weight", eps, sizes.value_dim, false);
  }
};

/// self_attention with norms of the heads of q and k, multiplied by sigmoid(W_g x). Adds the tensor W_g, attn_q_gate or
/// another one.
/// @shape  as self_attention
template <dtype W, dtype A = input_type<W>>
struct gated_attention {
  self_attention<W, A, qk_norm::rms> attention;    ///< without the gate
  std::string_view weight = "attn_q_gate.weight";  ///< W_g's name

  /// Takes sizes and epsilon from a config.
  constexpr gated_attention(const decoder_config& c) : attention(c) {}  // NOLINT: a config is what describes it
  /// Attention of one kind of layer.
  constexpr gated_attention(const decoder_config& c, const attention_reach& reach, std::string_view gate)
      : attention(c, reach), weight(gate) {}

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const std::uint32_t heads = attention.num_attention_heads, wide = attention.head_dim;
    // In front of attention, next to the products of the same input, which it does not wait for.
    const ir::value_id gate = t.matmul(activations<A>(t, x, weight), weight, heads * wide, attention.hidden_size, W);
    const ir::value_id y = attention.forward(t, x);
    return t.head_gate(y, gate, {}, 0, wide, true);
  }
};

}  // namespace intaglio::graph
