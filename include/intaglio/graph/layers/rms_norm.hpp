// SPDX-License-Identifier: MIT
// Root-mean-square norm.
#pragma once

#include "intaglio/graph/layer.hpp"

namespace intaglio::graph {

/// Root-mean-square norm over the last axis: y = x / sqrt(mean(x^2) + eps) * w.
/// @shape  x, y: [tokens, width] f32; w: [width] f32
/// @source Zhang & Sennrich 2019; transformers, LlamaRMSNorm
struct rms_norm {
  std::string_view weight;  ///< the tensor's name
  float eps;                ///< config.json's rms_norm_eps
  float scale = 1;          ///< factor of the result
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const { return t.rms_norm(x, weight, eps, scale); }
};

}  // namespace intaglio::graph
