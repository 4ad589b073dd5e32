// SPDX-License-Identifier: MIT
// The device memory that stages of a cut plan take, counted before anything is loaded.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/memory.hpp"
#include "intaglio/plan/cut.hpp"
#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// The whole plans that devices run, and how a model is cut over them.
struct device_cut {
  std::vector<const plan::table*> tables;  ///< by device
  std::vector<std::shared_ptr<const plan::stage>> stages;
};

/// Number of devices that are the same device, opened again: they share its memory.
inline std::size_t same_devices(std::span<const gpu::device> on, const gpu::device& as) {
  return static_cast<std::size_t>(std::count_if(
      on.begin(), on.end(), [&](const gpu::device& each) { return each.description().uuid == as.description().uuid; }));
}

/// Bytes that the devices' own memory can still hold together. A device that was opened several times counts once.
inline std::uint64_t available_memory(std::span<const gpu::device> on) {
  std::uint64_t out = 0;
  for (const gpu::device& each : on) out += available_memory(each) / same_devices(on, each);
  return out;
}

/// Whether the device's memory is also the host's: it has no other heap.
inline bool has_one_memory(const gpu::device& on) {
  const auto& heaps = on.description().heaps;
  return std::all_of(heaps.begin(), heaps.end(), [](const gpu::memory_heap& each) { return each.device_local; });
}

/// Device memory of a stage by purpose.
struct stage_need {
  memory_need plan;        ///< what a session or a batch of the stage's plan takes
  std::uint64_t rows = 0;  ///< rows that cross into the stage and out of it
  std::uint64_t total() const { return plan.total() + rows; }
};
/// The device memory that a stage needs.
inline stage_need needed_stage_memory(const gpu::device& on, const plan::table& stage) {
  const plan::row_memory rows = plan::row_memory_of(stage, stage.batch.layers != 0);
  return {needed_memory(stage), rows.of_device() + (has_one_memory(on) ? rows.of_host() : 0)};
}
/// What plan::stage_costs does not count: bytes of every stage of a plan.
inline std::uint64_t uncounted_stage_memory(const plan::table& whole, const plan::stage_costs& counted) {
  const std::uint64_t all = needed_memory(whole).total();
  return all - (std::min)(all, counted.of({0, counted.layers()}).total());
}

/// Text: "need 1.2 GiB for layers 0 to 15 (weights 1.0 GiB, KV cache 100 MiB, rows that cross 48 MiB)".
inline std::string need_text(const stage_need& need, plan::layer_range layers) {
  return "need " + gpu::bytes_text(need.total()) + " for layers " + std::to_string(layers.first) + " to " +
         std::to_string(layers.end - 1) + " (weights " + gpu::bytes_text(need.plan.weights) + ", KV cache " +
         gpu::bytes_text(need.plan.caches) + ", rows that cross " + gpu::bytes_text(need.rows) + ")";
}
/// Refuses a cut whose stages do not fit.
/// @error out_of_memory: a stage does not fit; names its layers and the numbers
inline void require_stage_memory(std::span<const gpu::device> on, const device_cut& cut) {
  for (std::size_t i = 0; i < on.size(); ++i) {
    const plan::stage& stage = *cut.stages[i];
    const stage_need need = needed_stage_memory(on[i], stage.table());
    std::uint64_t total = 0;
    for (std::size_t k = 0; k < on.size(); ++k)
      if (on[k].description().uuid == on[i].description().uuid)
        total += needed_stage_memory(on[k], cut.stages[k]->table()).total();
    const std::uint64_t available = available_memory(on[i]);
    if (total <= available) continue;
    throw out_of_memory(
        on[i].label(),
        "load stage " + std::to_string(i) + " of " + std::to_string(on.size()) + " of " + model_name(stage.table()),
        need_text(need, stage.layers()) +
            (total == need.total() ? "" : ", " + gpu::bytes_text(total) + " with the other stages there") + ", have " +
            gpu::bytes_text(available));
  }
}

}  // namespace intaglio::runtime
