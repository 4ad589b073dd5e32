// SPDX-License-Identifier: MIT
// Options of an embedding.
#pragma once

#include <cstdint>
#include <optional>

#include "intaglio/core/pooling.hpp"

namespace intaglio {

/// Options of one embedding of a text.
struct embed_options {
  std::optional<intaglio::pooling> pooling{};  ///< absent: as the model's files say, else the last token's
  bool normalize = true;                       ///< scaled to a length of 1
  std::uint32_t chunk = 0;                     ///< tokens fed at once, at most the plan's; 0: the plan's
};

}  // namespace intaglio
