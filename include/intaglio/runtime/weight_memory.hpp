// SPDX-License-Identifier: MIT
// The weights of a plan in the memory from which the device reads them: its own, the host's or a mapped file. There is
// one item for each global weight, and one for each layer of the other weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/io/leased_mapping.hpp"
#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// The memory of a plan's weights. load_weights (weights.hpp) fills it, the executor reads it.
struct weight_memory {
  std::shared_ptr<const io::leased_mapping>
      mapping;                     ///< of the file whose weights are read in place; null: all were copied
  std::uint64_t mapped_bytes = 0;  ///< bytes of weights in the mapped file; the others are in device memory, except for
  std::uint64_t host_bytes = 0;    ///< bytes of weights in host memory, which the device reads across the bus
  placed_items placed;
  std::vector<std::uint32_t> first;  ///< by slot: its item, or the item of its first layer

  /// The item of a slot in a layer.
  std::uint32_t item(const plan::table& of, std::uint32_t slot, std::uint32_t layer) const {
    return first[slot] + of.copy_of(of.weights[slot], layer);
  }
  std::uint64_t address(const plan::table& of, std::uint32_t slot, std::uint32_t layer) const {
    return placed.items[item(of, slot, layer)].address;
  }
  /// Checks the file after a pass, before its results are used.
  /// @error file_error: the file that is read in place was truncated, or written to before it could be copied, so the
  /// pass may have read other weights than were checked
  void expect_unchanged() const {
    if (mapping) mapping->expect_unchanged();
  }
};

/// For each slot the index of its first item; items are in the order of the plan's weights.
inline std::vector<std::uint32_t> first_items(const plan::table& of) {
  std::vector<std::uint32_t> out;
  std::uint32_t count = 0;
  for (const plan::weight& each : of.weights) {
    out.push_back(count);
    count += of.copies(each);
  }
  return out;
}

/// Number of copies of weights in memory: one for each weight of each layer.
inline std::size_t item_count(const plan::table& of) {
  std::size_t out = 0;
  for (const plan::weight& each : of.weights) out += of.copies(each);
  return out;
}

/// Slots of a plan's weights for which a predicate holds.
template <class Kind>
std::vector<std::uint32_t> slots_where(const plan::table& of, Kind&& kind) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot)
    if (kind(of.weights[slot])) out.push_back(slot);
  return out;
}

/// A weight's layers first .. end - 1; 0 .. 0 for a weight that is not per layer.
struct weight_part {
  std::uint32_t slot = 0, first = 0, end = 0;

  /// Calls each(layer) for these layers.
  template <class Each>
  void layers(const plan::table& of, Each&& each) const {
    for (std::uint32_t layer = first; layer < end; ++layer)
      if (of.has(of.weights[slot], layer)) each(layer);
  }
};
/// Slots with all their layers.
inline std::vector<weight_part> whole_slots(const plan::table& of, std::span<const std::uint32_t> slot_count) {
  std::vector<weight_part> out;
  for (const std::uint32_t slot : slot_count)
    out.push_back({slot, 0, of.weights[slot].per_layer ? of.config->num_hidden_layers : 1});
  return out;
}

/// Whether a weight holds vectors of features of an FFN, or of its experts.
constexpr bool is_of_features(const plan::weight& w) {
  if (!w.per_layer || w.layout == plan::weight_layout::ternary_scales || w.layout == plan::weight_layout::vector_f32)
    return false;
  const std::string_view name = w.sources[0].view();
  for (const std::string_view kind : {"ffn_gate", "ffn_up", "ffn_down"})
    for (const std::string_view rest : {".weight", "_exps.weight"})
      if (name.starts_with(kind) && name.substr(kind.size()) == rest) return true;
  return false;
}

/// Bytes of each layer of some weights.
inline std::vector<std::uint64_t> sizes_of(const plan::table& of, array_view<const weight_part> parts) {
  std::vector<std::uint64_t> out;
  for (const weight_part& each : parts)
    each.layers(of, [&](std::uint32_t) { out.push_back(of.weights[each.slot].bytes); });
  return out;
}

/// Weights by their memory: first those in device memory, then those in host memory.
struct weight_split {
  std::vector<weight_part> device, host;
  std::uint64_t device_bytes = 0, host_bytes = 0;

  std::vector<weight_part> all() const {
    std::vector<weight_part> out = device;
    out.insert(out.end(), host.begin(), host.end());
    return out;
  }
};
/// Splits weights by a budget of device memory: it holds all weights except FFNs, and the FFNs of as many first layers
/// as fit.
/// @param budget bytes; absent: it holds all weights  @error argument_error: the weights that are not FFNs exceed it
inline weight_split split_weights(const plan::table& of, std::optional<std::uint64_t> budget = {}) {
  weight_split out;
  const std::uint32_t layers = of.config->num_hidden_layers;
  const auto features_of = [&](std::uint32_t layer) {
    std::uint64_t bytes = 0;
    for (const plan::weight& w : of.weights)
      if (is_of_features(w) && of.has(w, layer)) bytes += item_bytes(w.bytes);
    return bytes;
  };
  std::uint64_t rest = 0;
  for (const plan::weight& w : of.weights)
    if (!is_of_features(w)) rest += item_bytes(w.bytes) * of.copies(w);
  if (budget && *budget < rest)
    throw argument_error("budget of the weights", "at least " + gpu::bytes_text(rest) + " (all but the FFNs)",
                         gpu::bytes_text(*budget));
  std::uint32_t kept = 0;
  out.device_bytes = rest;
  for (; kept < layers; ++kept) {
    const std::uint64_t bytes = features_of(kept);
    if (budget && bytes > *budget - out.device_bytes) break;
    out.device_bytes += bytes;
  }
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot) {
    const bool features = is_of_features(of.weights[slot]);
    const std::uint32_t end = of.weights[slot].per_layer ? layers : 1, parting = features ? kept : end;
    if (parting != 0) out.device.push_back({slot, 0, parting});
    if (parting != end) out.host.push_back({slot, parting, end});
  }
  for (std::uint32_t layer = kept; layer < layers; ++layer) out.host_bytes += features_of(layer);
  return out;
}

/// Allocates memory for some weights, one after the other, without filling it.
/// @param largest_piece a smaller limit than the device's for one allocation, 0: none
/// @error device_error: a weight is larger than one allocation may be; out_of_memory
inline placed_items allocate_items(const gpu::device& on, const plan::table& of, array_view<const weight_part> parts,
                                   gpu::placement where, std::uint64_t largest_piece = 0) {
  return gpu::translated([&] { return place_items(on, sizes_of(of, parts), where, "the weights", largest_piece); });
}

/// Allocates memory for all weights, an item a layer in the order of split.all(). @error as allocate_items
inline placed_items allocate_items(const gpu::device& on, const plan::table& of, const weight_split& split,
                                   std::uint64_t largest_piece = 0) {
  placed_items out = allocate_items(on, of, split.device, gpu::placement::device_local, largest_piece);
  placed_items host = allocate_items(on, of, split.host, gpu::placement::host, largest_piece);
  for (auto& each : host.items) each.buffer += static_cast<std::uint32_t>(out.buffers.size());
  out.items.insert(out.items.end(), host.items.begin(), host.items.end());
  for (gpu::buffer& each : host.buffers) out.buffers.push_back(std::move(each));
  return out;
}

/// Moves the items of some weights into the memory of all weights.
inline void take_items(const plan::table& of, weight_memory& into, placed_items&& items,
                       array_view<const weight_part> parts) {
  const auto before = static_cast<std::uint32_t>(into.placed.buffers.size());
  std::size_t next = 0;
  for (const weight_part& each : parts)
    each.layers(of, [&](std::uint32_t layer) {
      auto& to = into.placed.items[into.item(of, each.slot, layer)] = items.items[next++];
      to.buffer += before;
    });
  for (gpu::buffer& each : items.buffers) into.placed.buffers.push_back(std::move(each));
}

/// The memory of all weights, made of the items of allocate_items.
[[gnu::cold]] inline weight_memory weights_of(const plan::table& of, const weight_split& split, placed_items&& items) {
  weight_memory out;
  out.host_bytes = split.host_bytes;
  out.first = first_items(of);
  out.placed.items.resize(item_count(of));
  take_items(of, out, std::move(items), split.all());
  return out;
}

/// Allocates memory for all weights, without filling it. @error as allocate_items
inline weight_memory allocate_weights(const gpu::device& on, const plan::table& of, std::uint64_t largest_piece = 0,
                                      std::optional<std::uint64_t> budget = {}) {
  return gpu::translated([&] {
    const weight_split split = split_weights(of, budget);
    return weights_of(of, split, allocate_items(on, of, split, largest_piece));
  });
}

}  // namespace intaglio::runtime
