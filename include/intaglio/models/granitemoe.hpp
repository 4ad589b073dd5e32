// SPDX-License-Identifier: MIT
// Granite 3 with experts: Mixtral's layers with Granite's multipliers. A mixture may have a shared expert. Source:
// transformers, models/granitemoe and models/granitemoeshared; values from the config.json of each published model.
#pragma once

#include "intaglio/models/mixtral.hpp"

namespace intaglio::models {

/// The type of a model.
/// @tparam W of the products' weights  @tparam H of the head's  @tparam D of the embedding
template <const decoder_config& c, dtype W = dtype::bf16, dtype H = graph::head_type(W, c.hidden_size), dtype D = H>
struct granitemoe {
  static constexpr const decoder_config& config = c;

  static constexpr auto graph() { return mixtral_graph<W>(c, H, D); }
};

}  // namespace intaglio::models
