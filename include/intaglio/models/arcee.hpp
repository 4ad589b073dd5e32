// SPDX-License-Identifier: MIT
// Arcee's foundation models: a Llama whose FFNs have no gate and use squared ReLU. Source: transformers, models/arcee.
#pragma once

#include "intaglio/graph/layers/ungated_ffn.hpp"
#include "intaglio/models/llama.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct arcee {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return llama_graph<W, graph::ungated_ffn>(c, H, D); }
};

}  // namespace intaglio::models
