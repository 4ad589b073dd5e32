// SPDX-License-Identifier: MIT
// Pipelines are made while the weights stream: the driver's compiler needs the processor, the weights the disk and the bus.
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/runtime/kernel_set.hpp"

namespace intaglio::runtime {

/// Makes a plan's pipelines on a thread.
class pipelines_ahead {
 public:
  pipelines_ahead() = default;
  /// @param sequences of a plan's table, which outlives this  @param cache outlives this, and nobody else uses it until take()
  pipelines_ahead(const gpu::device& on, const kernel_modules& modules, std::vector<const plan::sequence*> sequences, gpu::pipeline_cache& cache) {
    kernels_.emplace(on, modules);
    try {
      thread_ = std::jthread([this, of = std::move(sequences), &cache]() noexcept {
        try {
          kernels_->add(of, &cache);
        } catch (...) {
          failure_ = std::current_exception();
        }
      });
    } catch (const std::system_error&) {  // no thread to be had: who takes the set makes them
    }
  }
  pipelines_ahead(pipelines_ahead&&) = delete;  // the thread has its address

  /// The set, when the thread has ended; nothing from the second time on.
  /// @error device_error naming the kernel: the device refuses it; out_of_memory, device_lost
  std::optional<kernel_set> take() {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::exchange(kernels_, std::nullopt);
  }

 private:
  std::optional<kernel_set> kernels_;
  std::exception_ptr failure_;
  std::jthread thread_;  // goes first
};

}  // namespace intaglio::runtime
