// SPDX-License-Identifier: MIT
// The weights of a plan where the device reads them, its memory or a mapped file: one item for each global weight, one a layer for the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/io/leased_mapping.hpp"
#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// Filled by load_weights (weights.hpp), read by the executor.
struct weight_memory {
  std::shared_ptr<const io::leased_mapping> mapping;  ///< of the file that they are read from in place; null: they were copied
  std::uint64_t mapped_bytes = 0;                      ///< of weights that are; the others are in memory of the device
  placed_items placed;
  std::vector<std::uint32_t> first;  ///< by slot: its item, or that of layer 0

  std::uint64_t address(const plan::table& of, std::uint32_t slot, std::uint32_t layer) const {
    return placed.items[first[slot] + (of.weights[slot].per_layer ? layer : 0)].address;
  }
  /// To be asked when a pass is done, before anything is made of what it gave.
  /// @error file_error: the file that is read in place was cut or written to faster than it could be copied, so the pass may have read other weights than were checked
  void expect_unchanged() const {
    if (mapping) mapping->expect_unchanged();
  }
};

/// Items of a plan's weights in their order: first of each slot.
inline std::vector<std::uint32_t> first_items(const plan::table& of) {
  std::vector<std::uint32_t> out;
  std::uint32_t count = 0;
  for (const plan::weight& each : of.weights) {
    out.push_back(count);
    count += each.per_layer ? of.config->num_hidden_layers : 1;
  }
  return out;
}

inline std::size_t item_count(const plan::table& of) {
  std::size_t out = 0;
  for (const plan::weight& each : of.weights) out += each.per_layer ? of.config->num_hidden_layers : 1;
  return out;
}

/// Slots of a plan's weights of a kind.
template <class Kind>
std::vector<std::uint32_t> slots_where(const plan::table& of, Kind&& kind) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot)
    if (kind(of.weights[slot])) out.push_back(slot);
  return out;
}

/// Memory for the items of some slots, one behind the other, not yet filled.
/// @param largest_piece a smaller limit than the device's for one allocation, 0: none
/// @error device_error: a weight is larger than one allocation may be; out_of_memory
inline placed_items allocate_items(const gpu::device& on, const plan::table& of, std::span<const std::uint32_t> slots, std::uint64_t largest_piece = 0) {
  return gpu::translated([&] {
    std::vector<std::uint64_t> sizes;
    for (const std::uint32_t slot : slots) sizes.insert(sizes.end(), of.weights[slot].per_layer ? of.config->num_hidden_layers : 1, of.weights[slot].bytes);
    return place_items(on, sizes, gpu::placement::device_local, "the weights", largest_piece);
  });
}

/// Puts the items of some slots where those of all are.
inline void take_items(weight_memory& into, placed_items&& items, const plan::table& of, std::span<const std::uint32_t> slots) {
  const auto before = static_cast<std::uint32_t>(into.placed.buffers.size());
  std::size_t next = 0;
  for (const std::uint32_t slot : slots)
    for (std::uint32_t layer = 0; layer < (of.weights[slot].per_layer ? of.config->num_hidden_layers : 1); ++layer) {
      auto& to = into.placed.items[into.first[slot] + layer] = items.items[next++];
      to.buffer += before;
    }
  for (gpu::buffer& each : items.buffers) into.placed.buffers.push_back(std::move(each));
}

/// Memory for all weights, not yet filled. @error as of allocate_items
inline weight_memory allocate_weights(const gpu::device& on, const plan::table& of, std::uint64_t largest_piece = 0) {
  return gpu::translated([&] {
    weight_memory out;
    out.first = first_items(of);
    out.placed = allocate_items(on, of, slots_where(of, [](const plan::weight&) { return true; }), largest_piece);
    return out;
  });
}

}  // namespace intaglio::runtime
