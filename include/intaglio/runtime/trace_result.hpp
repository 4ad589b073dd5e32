// SPDX-License-Identifier: MIT
// Contributions of the features of a model's FFNs, token by token (docs/walk.md).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <vector>

namespace intaglio {

/// A feature that added to the residual stream.
struct fired_feature {
  std::uint32_t feature = 0;  ///< its number in the layer
  float score = 0;            ///< score of its gate
  float contribution = 0;     ///< |factor of its down vector| * |its down vector|
  float sign = 1;             ///< sign of that factor; -1: the opposite of the down vector was added
  friend bool operator==(const fired_feature&, const fired_feature&) = default;
};

/// A token that a decode pass fed.
struct traced_token {
  std::uint32_t position = 0;  ///< in the history
  std::int32_t token = 0;      ///< id of the token that was fed
  std::vector<float> sizes;    ///< [layers]: root of the sum of the squared contributions of all features
  std::vector<std::vector<fired_feature>>
      layers;  ///< [layers][<= top]: the largest contributions, the largest first, without zeros
};

/// The result of take_trace(): the tokens fed since the last call.
struct trace_result {
  std::vector<traced_token> tokens;  ///< in the order in which they were fed
  /// Number of tokens before or between these that were overwritten, since take_trace() was called too late.
  std::uint64_t lost = 0;
};

}  // namespace intaglio
