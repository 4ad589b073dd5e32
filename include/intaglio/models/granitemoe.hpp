// SPDX-License-Identifier: MIT
// Granite 3 with experts: Mixtral's layers with Granite's multipliers, whose mixtures may have an expert beside them
// that every token has. Source: transformers, models/granitemoe and models/granitemoeshared; values from the
// config.json that each model was published with.
#pragma once

#include "intaglio/models/mixtral.hpp"

namespace intaglio::models {

/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct granitemoe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return mixtral_graph<W>(c, H, D); }
};

}  // namespace intaglio::models
