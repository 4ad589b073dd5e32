// SPDX-License-Identifier: MIT
// Makes pipelines while the weights are loaded: the driver's compiler needs the processor, the weights need the disk
// and the bus.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "intaglio/core/array_view.hpp"
#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/runtime/kernel_set.hpp"

namespace intaglio::runtime {

/// Pipelines that are made before they are needed.
class pipelines_ahead {
 public:
  pipelines_ahead() = default;
  /// @param plan whose sequences these are  @param later as in kernel_set::begin  @param cache outlives the set; no
  /// other code may use it until kernel_set::wait() returns
  pipelines_ahead(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan, module_source source,
                  array_view<const plan::sequence* const> sequences, gpu::pipeline_cache& cache,
                  array_view<const plan::sequence* const> later = {})
      : plan_(std::move(plan)) {
    kernels_.emplace(on, source).begin(sequences, &cache, later);
  }

  /// The plan that they are made for, or null.
  const std::shared_ptr<const plan::device_plan>& plan() const noexcept { return plan_; }
  /// The set, some of whose pipelines may still be being made; empty from the second call on.
  std::optional<kernel_set> take() { return std::exchange(kernels_, std::nullopt); }

 private:
  std::shared_ptr<const plan::device_plan> plan_;
  std::optional<kernel_set> kernels_;
};

}  // namespace intaglio::runtime
