// SPDX-License-Identifier: MIT
// The weights of a plan, each once, with its offset in device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The weights that nodes use, each once, stored one after the other: global weights and the weights of a layer apart.
class weight_list {
 public:
  std::vector<weight> weights;
  std::uint64_t global_bytes = 0, layer_bytes = 0;

  constexpr std::uint32_t slot(weight w) {
    for (weight& known : by_pointer(weights)) {
      if (!is_same(known, w)) continue;
      known.kinds |= w.kinds;
      return static_cast<std::uint32_t>(&known - weights.data());
    }
    auto& end = w.per_layer ? layer_bytes : global_bytes;
    w.offset = end;
    end += aligned(w.bytes);
    weights.push_back(w);
    return static_cast<std::uint32_t>(weights.size()) - 1;
  }

 private:
  static constexpr bool is_same(const weight& a, const weight& b) {
    if (a.rows != b.rows || a.columns != b.columns || a.layout != b.layout || a.per_layer != b.per_layer ||
        a.source_count != b.source_count || a.order != b.order || a.codec != b.codec || a.rope != b.rope ||
        a.head_dim != b.head_dim || a.scale != b.scale)
      return false;
    for (std::size_t s = 0; s < a.source_count; ++s)
      if (a.sources[s] != b.sources[s].view()) return false;
    return true;
  }
};

}  // namespace intaglio::plan
