// SPDX-License-Identifier: MIT
// Gated feed-forward unit that decode walks feature by feature (docs/walk.md), in the place of gated_ffn.
#pragma once

#include "intaglio/graph/layers/gated_ffn.hpp"

namespace intaglio::graph {

/// What gated_ffn computes, to the last bit, for squared ReLU and int8 inputs of ternary products: a decode pass reads the up vectors of those features
/// alone whose gate is above 0, and the product behind the next norm the down vectors of those alone whose int8 input is not 0. The memory of both holds
/// vectors by features besides. Passes of several tokens read everything, as gated_ffn does.
/// @shape  x: [tokens, hidden_size]; out: [tokens, intermediate_size] f32
/// @error  does not fit: another activation; does not compile: other weights and inputs
template <dtype W, dtype A = input_type<W>>
struct walk_ffn {
  static_assert(W == dtype::i2_s && A == dtype::i8, "walk_ffn is for ternary weights and int8 inputs, whose sums are exact in any order");
  std::uint32_t hidden_size, intermediate_size;
  shader::activation_function act;  ///< squared ReLU, config.json's relu2

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = gated_ffn<W, A>{hidden_size, intermediate_size, act}.forward(t, x);
    t.walk(h);
    return h;
  }
};

}  // namespace intaglio::graph
