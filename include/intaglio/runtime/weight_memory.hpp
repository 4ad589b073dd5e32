// SPDX-License-Identifier: MIT
// The weights of a plan in device memory: one item for each global weight, one a layer for the others.
#pragma once

#include <cstdint>
#include <vector>

#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// Filled by load_weights (weights.hpp), read by the executor.
struct weight_memory {
  placed_items placed;
  std::vector<std::uint32_t> first;  ///< by slot: its item, or that of layer 0

  std::uint64_t address(const plan::table& of, std::uint32_t slot, std::uint32_t layer) const {
    return placed.items[first[slot] + (of.weights[slot].per_layer ? layer : 0)].address;
  }
};

/// Memory for all weights, not yet filled.
/// @param largest_piece a smaller limit than the device's for one allocation, 0: none
/// @error device_error: a weight is larger than one allocation may be; out_of_memory
inline weight_memory allocate_weights(const gpu::device& on, const plan::table& of, std::uint64_t largest_piece = 0) {
  return gpu::translated([&] {
    weight_memory out;
    std::vector<std::uint64_t> sizes;
    for (const plan::weight& each : of.weights) {
      out.first.push_back(static_cast<std::uint32_t>(sizes.size()));
      sizes.insert(sizes.end(), each.per_layer ? of.config->num_hidden_layers : 1, each.bytes);
    }
    out.placed = place_items(on, sizes, gpu::placement::device_local, "the weights", largest_piece);
    return out;
  });
}

}  // namespace intaglio::runtime
