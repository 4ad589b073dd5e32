// SPDX-License-Identifier: MIT
// Ordering: a barrier exactly where a dispatch reads or overwrites what an earlier one since the last barrier wrote or read.
// The period's barriers hold for the first layer, which follows the prologue, and for every later one, which follows itself.
#pragma once

#include <vector>

#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// True where the two may not run in either order or at once.
constexpr bool conflict(const access& a, const access& b) {
  if (!a.write && !b.write) return false;
  return a.where == b.where && a.slot == b.slot && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// What has been touched since the last barrier.
class pending_accesses {
 public:
  constexpr bool hazard(const dispatch& d, std::uint32_t layer) const {
    for (const auto& earlier : pending_)
      for (std::size_t i = 0; i < d.access_count; ++i) {
        const access& later = d.accesses[i];
        const bool cached = later.where == region::keys || later.where == region::values;
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

/// Sets `barrier` of all dispatches. The period is walked twice: behind the prologue and behind itself.
constexpr void order(std::vector<dispatch>& prologue, std::vector<dispatch>& period, std::vector<dispatch>& epilogue, std::uint32_t layers) {
  pending_accesses pending;
  auto walk = [&](std::vector<dispatch>& part, std::uint32_t layer) {
    for (auto& d : part) {
      if (!d.barrier && pending.hazard(d, layer)) d.barrier = true;
      if (d.barrier) pending.barrier();
      pending.add(d, layer);
    }
  };
  walk(prologue, 0);
  walk(period, 0);
  if (layers > 1) walk(period, 1);
  walk(epilogue, layers);
}

}  // namespace intaglio::plan
