// SPDX-License-Identifier: MIT
// Ordering: a dispatch gets a barrier exactly where it reads or overwrites bytes that a dispatch since the last barrier
// wrote, or overwrites bytes that one read. The barriers of a block hold for every layer of its kind, whether the
// prologue, a block of another kind, or one of the same kind precedes it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// True if two accesses conflict: they overlap and at least one writes, so their order matters.
constexpr bool conflict(const access& a, const access& b) {
  if (!a.write && !b.write) return false;
  return a.where == b.where && a.slot == b.slot && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// The accesses since the last barrier.
class pending_accesses {
 public:
  constexpr bool hazard(const dispatch& d, std::uint32_t layer) const {
    for (const auto& earlier : pending_)
      for (std::size_t i = 0; i < d.access_count; ++i) {
        const access& later = d.accesses[i];
        const bool cached = later.where == region::keys || later.where == region::values ||
                            later.where == region::kept || later.where == region::pool_keys ||
                            later.where == region::pool_values;
        if (cached && earlier.layer != layer) continue;  // every layer has a cache of its own
        if (conflict(earlier.what, later)) return true;
      }
    return false;
  }
  constexpr void barrier() { pending_.clear(); }
  constexpr void add(const dispatch& d, std::uint32_t layer) {
    for (std::size_t i = 0; i < d.access_count; ++i) pending_.push_back({d.accesses[i], layer});
  }

 private:
  struct entry {
    access what;
    std::uint32_t layer;
  };
  std::vector<entry> pending_;
};

/// Number of layers to walk from the first on, so that every pair of neighbouring kinds occurs, and the last layer has
/// the kind that precedes the epilogue. Blocks in which a dispatch has a barrier need no more: no access before that
/// barrier is pending in the next layer.
constexpr std::uint32_t layers_to_walk(const layer_pattern& pattern, std::uint32_t layers) {
  if (layers == 0) return 0;
  std::array<std::uint64_t, layer_pattern::max_kinds> seen{};  // by kind: one bit for each kind that followed it
  std::uint32_t walked = 1;
  for (std::uint32_t layer = 1; layer < layers; ++layer) {
    std::uint64_t& after = seen[pattern(layer - 1)];
    const std::uint64_t kind = std::uint64_t{1} << pattern(layer);
    if ((after & kind) == 0) after |= kind, walked = layer + 1;
  }
  while (pattern(walked - 1) != pattern(layers - 1)) ++walked;
  return walked;
}

/// Sets `barrier` of all dispatches.
constexpr void order(std::vector<dispatch>& prologue, std::vector<dispatch>& period, std::vector<dispatch>& epilogue,
                     const layer_pattern& pattern, std::uint32_t layers) {
  pending_accesses pending;
  auto walk = [&](std::vector<dispatch>& part, std::uint32_t layer, std::uint8_t kind = 0) {
    for (auto& d : part) {
      if (d.block != kind) continue;
      if (!d.barrier && pending.hazard(d, layer)) d.barrier = true;
      if (d.barrier) pending.barrier();
      pending.add(d, layer);
    }
  };
  walk(prologue, 0);
  for (std::uint32_t layer = 0; layer < layers_to_walk(pattern, layers); ++layer) walk(period, layer, pattern(layer));
  walk(epilogue, layers);
}

}  // namespace intaglio::plan
