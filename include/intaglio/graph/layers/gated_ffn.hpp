// SPDX-License-Identifier: MIT
// Gated feed-forward unit, without its down projection.
#pragma once

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// act(Wgate x) * (Wup x). Tensors ffn_gate, ffn_up.
/// @shape  x: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
/// @source Shazeer 2020 (GLU variants); So et al. 2021 (squared ReLU)
template <dtype W, dtype A = input_type<W>>
struct gated_ffn {
  std::uint32_t hidden_size, intermediate_size;  ///< columns and rows of both matrices
  shader::activation_function act;               ///< one of config.json's activations, or a type of the caller's
                                                 ///< (shader/activation.hpp)

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = activations<A>(t, x, "ffn_gate.weight");
    const ir::value_id gate = t.matmul(h, "ffn_gate.weight", intermediate_size, hidden_size, W);
    const ir::value_id up = t.matmul(h, "ffn_up.weight", intermediate_size, hidden_size, W);
    return t.gated(gate, up, act);
  }
};

}  // namespace intaglio::graph
