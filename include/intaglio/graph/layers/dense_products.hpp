// SPDX-License-Identifier: MIT
// The two products of an embedding model between its last norm and a text's vector.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// W3 W2 x, or x where the model has no products. sentence-transformers multiplies the pooled vector. Without biases
/// and activations the result is the same when every token's state is multiplied and then pooled. Tensors dense_2,
/// dense_3.
/// @shape  dense_2.weight: [features, hidden_size]; dense_3.weight: [hidden_size, features]; x, out: [tokens,
/// hidden_size] f32
/// @source Reimers & Gurevych 2019; sentence-transformers, models/Dense.py; EmbeddingGemma 2025
template <dtype W>
struct dense_products {
  std::uint32_t hidden_size, features;  ///< features 0: the model has no products
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    if (features == 0) return x;
    const ir::value_id wide = t.matmul(x, "dense_2.weight", features, hidden_size, W);
    return t.matmul(wide, "dense_3.weight", hidden_size, features, W);
  }
};

}  // namespace intaglio::graph
