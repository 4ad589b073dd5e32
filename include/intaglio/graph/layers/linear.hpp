// SPDX-License-Identifier: MIT
// Matrix products: y = W x, and the language model head.
#pragma once

#include "intaglio/graph/layer.hpp"

namespace intaglio::graph {

/// What a product by W reads: int8 with one scale a token where W is ternary (Wang et al. 2023, BitNet), else x as it is.
template <dtype W>
constexpr ir::value_id activations(ir::trace& t, ir::value_id x, std::string_view name) {
  if constexpr (W == dtype::i2_s) return t.quantize(x, name);
  else return x;
}

/// @shape  weight: [out, in]; x: [tokens, in] f32; y: [tokens, out] f32
/// @error  does not fit: x is not `in` wide, or `in` is no multiple of W's block
template <dtype W>
struct linear {
  std::string_view weight;
  std::uint32_t in, out;
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    return t.matmul(activations<W>(t, x, weight), weight, out, in, W);
  }
};

/// The head: logits over the vocabulary. Naming the embedding's tensor ties the two.
/// @shape  weight: [vocab_size, hidden_size]; logits: [tokens, vocab_size] f32
struct lm_head {
  std::string_view weight;
  std::uint32_t vocab_size, hidden_size;
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id logits = t.matmul(x, weight, vocab_size, hidden_size, dtype::f16);
    t.output(logits);
    return logits;
  }
};

}  // namespace intaglio::graph
