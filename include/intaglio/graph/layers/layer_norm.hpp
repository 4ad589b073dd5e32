// SPDX-License-Identifier: MIT
// LayerNorm.
#pragma once

#include "intaglio/graph/layer.hpp"

namespace intaglio::graph {

/// Norm over the last axis: y = (x - mean(x)) / sqrt(variance(x) + eps) * w + b, or without b.
/// @shape  x, y: [tokens, width] f32; w, b: [width] f32
/// @error  does not fit: width is no multiple of 4
/// @source Ba et al. 2016; transformers, BertSelfOutput
struct layer_norm {
  std::string_view weight, bias;  ///< the tensors' names; an empty bias means that there is none
  float eps;                      ///< config.json's layer_norm_eps
  float scale = 1;                ///< factor of the result
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    return t.layer_norm(x, weight, bias, eps, scale);
  }
};

}  // namespace intaglio::graph
