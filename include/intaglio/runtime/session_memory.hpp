// SPDX-License-Identifier: MIT
// The KV caches of a session or a batch in device memory, and the addresses that all sequences share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/runtime/placement.hpp"
#include "intaglio/runtime/recorded_sequence.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// Allocates keys and values of each layer in turn; a layer that shares another layer's cache uses the other's items.
/// @param bytes_of returns a layer's plan::layer_cache
template <class BytesOf>
placed_items place_caches(const gpu::device& on, const plan::table& of, std::string_view label, BytesOf&& bytes_of) {
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer) {
    const plan::layer_cache its = bytes_of(layer);
    if (!its.shared) sizes.insert(sizes.end(), {its.key_bytes, its.value_bytes});
  }
  placed_items out = place_items(on, sizes, gpu::placement::device_local, label);
  const auto own = std::move(out.items);
  out.items = {};
  for (std::uint32_t layer = 0, next = 0; layer < of.config->num_hidden_layers; ++layer)
    for (std::uint32_t which = 0; which < 2; ++which)
      out.items.push_back(of.cache_of(layer).shared ? out.items[2 * of.cache_owner(layer) + which] : own[next++]);
  return out;
}

/// Appends the addresses of keys and values by layer.
inline void add_caches(const placed_items& caches, std::vector<std::uint64_t>& keys,
                       std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i + 1 < caches.items.size(); i += 2) {
    keys.push_back(caches.items[i].address);
    values.push_back(caches.items[i + 1].address);
  }
}

/// Addresses of the arena, of caches and of weights.
inline address_table addresses_of(const gpu::buffer& arena, const placed_items& caches, const weight_memory& weights) {
  address_table out;
  out.arena = arena.address();
  out.arena_memory = &arena;
  add_caches(caches, out.keys, out.values);
  out.first_weight = weights.first;
  for (const auto& item : weights.placed.items) out.weights.push_back(item.address);
  return out;
}

}  // namespace intaglio::runtime
