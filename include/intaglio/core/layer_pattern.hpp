// SPDX-License-Identifier: MIT
// Which kind of block each of a model's layers is, where they are not all of one kind: a short list that is gone
// through again and again.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>

namespace intaglio {

/// Layer l is of kind blocks[l % period]; the last time the list may be cut short.
struct layer_pattern {
  static constexpr std::uint32_t max_period = 16;
  std::uint32_t period = 1;
  std::array<std::uint8_t, max_period> blocks{};

  constexpr std::uint8_t operator()(std::uint32_t layer) const { return blocks[layer % period]; }
  /// Kinds that there are.
  constexpr std::uint32_t kinds() const {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < period; ++i) most = blocks[i] > most ? blocks[i] : most;
    return most + 1;
  }
  /// Whether all layers are of one kind, or the last of each period is of kind 1 and all others of kind 0.
  constexpr bool ends_each_period() const {
    if (kinds() == 1) return period == 1;
    for (std::uint32_t i = 0; i < period; ++i)
      if (blocks[i] != (i + 1 == period ? 1 : 0)) return false;
    return true;
  }
  /// Layers of a kind among the first `layers`.
  constexpr std::uint32_t count(std::uint8_t kind, std::uint32_t layers) const {
    std::uint32_t out = 0;
    for (std::uint32_t layer = 0; layer < layers; ++layer) out += (*this)(layer) == kind;
    return out;
  }
  friend constexpr bool operator==(const layer_pattern&, const layer_pattern&) = default;
};

}  // namespace intaglio
