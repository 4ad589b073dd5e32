// SPDX-License-Identifier: MIT
// Per-layer embeddings: each layer's own embedding of a token, beside the stream, and how the layer adds it.
#pragma once

#include "intaglio/core/square_root.hpp"
#include "intaglio/graph/layers/linear.hpp"

namespace intaglio::graph {

/// Per-layer embeddings of all layers at once: P = (rms(Wp x) w + sqrt(width) e) / sqrt(2). e is the token's row of a
/// second table. The norm is over each layer's part separately. Tensors per_layer_token_embd, per_layer_model_proj,
/// per_layer_proj_norm.
/// @shape  x: [tokens, hidden_size], the embedding's output; out: [tokens, layers, width] f32
/// @source transformers, models/gemma4 (project_per_layer_inputs)
struct layer_inputs {
  std::uint32_t vocab_size, hidden_size, layers, width;  ///< config.json's
  float eps;                                             ///< of the norm
  dtype table, projection;                               ///< the types in which the device holds the table and Wp

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    constexpr float half_root = 0.70710678f;
    const std::uint32_t all = layers * width;
    const ir::value_id e = t.embedding("per_layer_token_embd.weight", vocab_size, all, table,
                                       square_root(static_cast<float>(width)) * half_root);
    const ir::value_id p = t.matmul(x, "per_layer_model_proj.weight", all, hidden_size, projection);
    // transformers divides Wp x by sqrt(hidden_size). The norm undoes that, except for its epsilon, which is scaled
    // here.
    return t.add(e,
                 t.head_norm(p, "per_layer_proj_norm.weight", eps * static_cast<float>(hidden_size), width, half_root));
  }
};

/// Adds a layer's embedding to the stream: x + branch(x), branch(x) = rms(Wu(gelu(Wg x) * P_layer)) w. Tensors
/// inp_gate, proj, post_norm.
/// @shape  x, out: [tokens, hidden_size] f32; inputs: [tokens, layers, width] f32
template <dtype W>
struct layer_input_block {
  std::uint32_t hidden_size, layers, width;  ///< width of the stream, number of layers, width of a layer's embedding
  float eps;                                 ///< of the norm

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x, ir::value_id inputs) const {
    return t.add(x, branch(t, x, inputs));
  }
  /// The branch without x: rms(Wu(gelu(Wg x) * P_layer)) w. @shape  as forward()
  constexpr ir::value_id branch(ir::trace& t, ir::value_id x, ir::value_id inputs) const {
    const ir::value_id gate = t.matmul(x, "inp_gate.weight", width, hidden_size, W);
    const ir::value_id h = t.gated_by_layer(gate, inputs, layers, activation::gelu_tanh);
    return t.rms_norm(t.matmul(h, "proj.weight", hidden_size, width, W), "post_norm.weight", eps);
  }
};

}  // namespace intaglio::graph
