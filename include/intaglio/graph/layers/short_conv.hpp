// SPDX-License-Identifier: MIT
// The gated short convolution that replaces attention in layers of LFM2, without its output projection.
#pragma once

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// Gated short convolution: C conv(B h) for [B; C; h] = W_in x; a causal convolution of each channel over its last
/// conv_taps tokens.
/// Tensors shortconv.in_proj, [3 hidden_size, hidden_size], and shortconv.conv, [hidden_size, conv_taps].
/// @shape  x: [tokens, hidden_size]; out: [tokens, hidden_size] f32
/// @error  does not fit: conv_taps below 2 or above 8; hidden_size is no multiple of 4
/// @source transformers, models/lfm2; Liquid AI 2025
template <dtype W, dtype A = input_type<W>>
struct short_conv {
  std::uint32_t hidden_size, conv_taps;  ///< config.json's; conv_taps is conv_L_cache

  /// Takes sizes from a config.
  constexpr short_conv(const decoder_config& c)  // NOLINT: a config is what describes it
      : hidden_size(c.hidden_size), conv_taps(c.conv_taps) {}

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = activations<A>(t, x, "shortconv.in_proj.weight");
    const ir::value_id parts = t.matmul(h, "shortconv.in_proj.weight", 3 * hidden_size, hidden_size, W);
    return t.short_conv(parts, "shortconv.conv.weight", conv_taps, true);
  }
};

}  // namespace intaglio::graph
