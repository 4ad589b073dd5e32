// SPDX-License-Identifier: MIT
// Token embedding: the start of a model.
#pragma once

#include "intaglio/graph/layer.hpp"

namespace intaglio::graph {

/// Token embedding: the token's row of the table, multiplied by scale.
/// @shape  weight: [vocab_size, hidden_size], held as type (f16, bf16, f32); out: [tokens, hidden_size] f32
struct embedding {
  std::string_view weight;                ///< the tensor's name
  std::uint32_t vocab_size, hidden_size;  ///< its rows and columns
  dtype type = dtype::f16;                ///< the type in which the device holds the table
  float scale = 1;                        ///< factor of every row
  constexpr ir::value_id forward(ir::trace& t) const {
    return t.embedding(weight, vocab_size, hidden_size, type, scale);
  }
};

}  // namespace intaglio::graph
