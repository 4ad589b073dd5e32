// SPDX-License-Identifier: MIT
// The layer that replaces attention in recurrent layers of Granite 4.0 H and Nemotron-H, and that is beside attention
// in Falcon-H1, without its output projection.
#pragma once

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// Mamba-2: rms_norm(scan(silu(conv(W_xbc x) + bias), W_dt x) * silu(W_gate x)); the norm is over each group of heads
/// separately; a config whose mamba_rms_norm is false has no norm. Tensors ssm_in_gate, ssm_in_xbc and ssm_in_dt, which
/// files hold as one matrix, ssm_conv1d [qkv_size, conv_taps] and its bias, ssm_a, ssm_d and ssm_dt.bias [value_heads],
/// ssm_norm [value_size].
/// @shape  x: [tokens, hidden_size]; out: [tokens, value_size] f32
/// @error  does not fit: groups do not share heads evenly; widths that kernels do not take
/// @source Dao & Gu 2024 (structured state space duality); transformers, models/bamba and models/nemotron_h
template <dtype W, dtype A = input_type<W>>
struct mamba2 {
  std::uint32_t hidden_size, conv_taps;  ///< config.json's; conv_taps is mamba_d_conv or conv_kernel
  delta_net_config sizes;                ///< of heads, groups and states
  float eps;                             ///< of the norm
  bool normed;                           ///< whether there is a norm

  /// Takes sizes and epsilon from a config.
  constexpr mamba2(const decoder_config& c)  // NOLINT: a config is what describes it
      : hidden_size(c.hidden_size), conv_taps(c.conv_taps), sizes(c.delta_net), eps(c.rms_norm_eps),
        normed(c.mamba_rms_norm) {}

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = activations<A>(t, x, "ssm_in_xbc.weight");
    const ir::value_id gate = t.matmul(h, "ssm_in_gate.weight", sizes.value_size(), hidden_size, W);
    const ir::value_id products = t.matmul(h, "ssm_in_xbc.weight", sizes.qkv_size(), hidden_size, W);
    const ir::value_id steps = t.matmul(h, "ssm_in_dt.weight", sizes.value_heads, hidden_size, W);
    const ir::value_id xbc = t.short_conv(products, "ssm_conv1d.weight", conv_taps, false, "ssm_conv1d.bias");
    const ir::value_id y = t.state_space(xbc, gate, steps, "ssm_a", "ssm_dt.bias", "ssm_d", sizes);
    return !normed ? y : t.group_norm(y, "ssm_norm.weight", eps, sizes.key_heads);
  }
};

}  // namespace intaglio::graph
