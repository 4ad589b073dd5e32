// SPDX-License-Identifier: MIT
// What the features of a model's FFNs added, token by token (docs/walk.md).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <vector>

namespace intaglio {

/// A feature that added to the stream.
struct fired_feature {
  std::uint32_t feature = 0;  ///< its number in the layer
  float score = 0;            ///< of its gate
  float contribution = 0;     ///< |what its down vector was multiplied with| * |its down vector|
  float sign = 1;  ///< of what it was multiplied with: where it is -1, the opposite of the down vector was written
  friend bool operator==(const fired_feature&, const fired_feature&) = default;
};

/// One token that a decode pass was fed with.
struct traced_token {
  std::uint32_t position = 0;  ///< in the history
  std::int32_t token = 0;      ///< id of the token that was fed
  std::vector<float> sizes;    ///< [layers]: root of the sum of the squared contributions of all features
  std::vector<std::vector<fired_feature>>
      layers;  ///< [layers][<= top]: the largest contributions, largest first; none that are 0
};

/// What take_trace() gives: the tokens fed since the last call.
struct trace_result {
  std::vector<traced_token> tokens;  ///< in the order in which they were fed
  std::uint64_t lost = 0;            ///< before these or between: overwritten since nobody took them
};

}  // namespace intaglio
