// SPDX-License-Identifier: MIT
// Ordering: a dispatch gets a barrier exactly where it reads or overwrites bytes that a dispatch since the last barrier
// wrote, or overwrites bytes that one read. The barriers of a block hold for every layer of its kind, whether the
// prologue, a block of another kind, or one of the same kind precedes it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// True if two accesses conflict: they overlap and at least one writes, so their order matters.
constexpr bool conflict(const access& a, const access& b) {
  return (a.write || b.write) && a.where == b.where && a.slot == b.slot && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

/// The accesses since the last barrier.
class pending_accesses {
 public:
  constexpr bool hazard(const dispatch& d, std::uint32_t layer) const {
    for (const access& later : accesses_of(d)) {
      const bool cached = later.where == region::keys || later.where == region::values || later.where == region::kept ||
                          later.where == region::pool_keys ||
                          later.where == region::pool_values;  // every layer has a cache of its own
      const auto meets = [&](const list& pending) {
        for (const entry& earlier : pending.all())
          if (!(cached && earlier.layer != layer) && conflict(earlier.what, later)) return true;
        return false;
      };
      if (meets(writes_) || (later.write && meets(reads_))) return true;
    }
    return false;
  }
  constexpr void barrier() { writes_.clear(), reads_.clear(); }
  constexpr void add(const dispatch& d, std::uint32_t layer) {
    for (const access& each : accesses_of(d)) (each.write ? writes_ : reads_).add({each, layer});
  }

 private:
  struct entry {
    access what;
    std::uint32_t layer;
  };
  /// A list that keeps its elements when it is cleared, because constant evaluations destroy them one by one.
  class list {
   public:
    constexpr pointed<const entry> all() const { return {entries_.data(), entries_.data() + count_}; }
    constexpr void clear() { count_ = 0; }
    constexpr void add(const entry& added) {
      if (count_ == entries_.size()) entries_.push_back(added);
      else entries_[count_] = added;
      ++count_;
    }

   private:
    std::vector<entry> entries_;
    std::size_t count_ = 0;
  };
  list writes_, reads_;
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

/// Whether a layer and the two layers in front of it are of one kind. It leaves the pending accesses of the layer in
/// front of it, so that it need not be walked.
constexpr bool is_third_of_its_kind(const layer_pattern& pattern, std::uint32_t layer) {
  return layer >= 2 && pattern(layer) == pattern(layer - 1) && pattern(layer) == pattern(layer - 2);
}

/// Sets `barrier` of all dispatches.
constexpr void order(std::vector<dispatch>& prologue, std::vector<dispatch>& period, std::vector<dispatch>& epilogue,
                     const layer_pattern& pattern, std::uint32_t layers) {
  pending_accesses pending;
  auto walk = [&](std::vector<dispatch>& part, std::uint32_t layer, std::uint8_t kind = 0) {
    for (dispatch& d : by_pointer(part)) {
      if (d.block != kind) continue;
      if (!d.barrier && pending.hazard(d, layer)) d.barrier = true;
      if (d.barrier) pending.barrier();
      pending.add(d, layer);
    }
  };
  walk(prologue, 0);
  const std::uint32_t walked = layers_to_walk(pattern, layers);
  for (std::uint32_t layer = 0; layer < walked; ++layer)
    if (!is_third_of_its_kind(pattern, layer)) walk(period, layer, pattern(layer));
  walk(epilogue, layers);
}

}  // namespace intaglio::plan
