// SPDX-License-Identifier: MIT
// Gated feed-forward unit, without its down projection.
#pragma once

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// act(Wgate x) * (Wup x). Tensors ffn_gate, ffn_up, and their own norms where norm_eps is set.
/// @shape  x: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
/// @source Shazeer 2020 (GLU variants); So et al. 2021 (squared ReLU)
template <dtype W, dtype A = input_type<W>>
struct gated_ffn {
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of both matrices
  shader::activation_function act;               ///< one of config.json's activations, or a type of the caller's
                                                 ///< (shader/activation.hpp)

  float norm_eps = 0;  ///< epsilon of the norms ffn_gate_norm_in, ffn_up_norm_in; 0: none

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = product_input<A>(t, x, "ffn_gate.weight", norm_eps);
    const ir::value_id gate = t.matmul(h, "ffn_gate.weight", intermediate_size, hidden_size, W);
    const ir::value_id own = norm_eps == 0 ? h : product_input<A>(t, x, "ffn_up.weight", norm_eps);
    const ir::value_id up = t.matmul(own, "ffn_up.weight", intermediate_size, hidden_size, W);
    return t.gated(gate, up, act);
  }
};

/// The feed-forward unit of a model's layers.  @tparam F gated_ffn, or another unit with its first members
template <class F>
constexpr F ffn_of(const decoder_config& c) {
  F out{c.hidden_size, c.intermediate_size, c.hidden_act};
  if constexpr (requires { out.norm_eps; }) out.norm_eps = c.projection_norm_eps;
  return out;
}

}  // namespace intaglio::graph
