// SPDX-License-Identifier: MIT
// Compiles large kernels in the background on llvmpipe. This driver compiles a kernel when it is first dispatched, one
// after the other on the queue's thread. The resident dispatch takes as long to compile as all others together, so it
// is compiled in parallel.
#pragma once

#include <system_error>
#include <thread>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/joining_thread.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/runtime/kernel_set.hpp"

namespace intaglio::runtime {

/// Compiles dispatches on a thread, on the same device opened once more; the driver's cache on disk (Mesa's) passes the
/// code on. A failure does no harm: the kernel is then compiled when it is first dispatched.
class compile_ahead {
 public:
  compile_ahead() = default;
  /// @param calls dispatches of a device's plan, which outlives this object
  compile_ahead(const gpu::device& on, module_source source, array_view<const plan::dispatch> calls) {
    try {
      thread_ = joining_thread([on, source, calls]() noexcept {
        try {
          const gpu::device other = on.another();
          kernel_set kernels(other, source);
          kernels.add(calls, nullptr);
          gpu::queue queue(other);
          gpu::recorder to(other, "compile ahead");
          for (const plan::dispatch& call : calls) to.touch(kernels.of(call));
          const gpu::recording commands = to.finish();
          const VkCommandBuffer handle = commands.handle();
          queue.wait(queue.submit({&handle, 1}, commands.name()), gpu::queue::first_hang_limit);
        } catch (...) {  // optional, so a failure is ignored
        }
      });
    } catch (const std::system_error&) {  // no thread to be had
    }
  }

  /// Waits until the thread has ended.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  joining_thread thread_;
};

}  // namespace intaglio::runtime
