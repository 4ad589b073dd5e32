// SPDX-License-Identifier: MIT
// Pipelines are made while the weights stream: the driver's compiler needs the processor, the weights the disk and the
// bus.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/runtime/kernel_set.hpp"

namespace intaglio::runtime {

/// Pipelines that are being made, for whoever comes to need them.
class pipelines_ahead {
 public:
  pipelines_ahead() = default;
  /// @param sampler_forms as kernel_set has it
  /// @param sequences of a plan's table, which outlives this  @param later as kernel_set::begin has it  @param cache
  /// outlives the set and nobody else uses it until kernel_set::wait() returns
  pipelines_ahead(const gpu::device& on, const kernel_modules& modules,
                  std::span<const plan::sequence* const> sequences, gpu::pipeline_cache& cache,
                  bool sampler_forms = false, std::span<const plan::sequence* const> later = {}) {
    kernels_.emplace(on, modules, sampler_forms).begin(sequences, &cache, later);
  }

  /// The set, some of whose pipelines may still be under way; nothing from the second time on.
  std::optional<kernel_set> take() { return std::exchange(kernels_, std::nullopt); }

 private:
  std::optional<kernel_set> kernels_;
};

}  // namespace intaglio::runtime
