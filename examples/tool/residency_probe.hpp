// SPDX-License-Identifier: MIT
// How many workgroups a device runs at once: what a dispatch of all layers would rely on. Includes Vulkan.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>
#include <intaglio/kernels/layers.hpp>
#include <intaglio/kernels/module_text.hpp>
#include <intaglio/kernels/spirv/residency.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace intaglio::tool {

/// What was tried and what came of it.
struct residency {
  std::uint32_t invocations = 0, shared_memory_bytes = 0;  ///< of each workgroup
  std::uint32_t turns = 0;                                 ///< that each looks for the others at most
  std::uint32_t at_once = 0;                               ///< the most workgroups of which each saw all, three times
  std::uint32_t tried = 0;                                 ///< the most that were dispatched
};

/// Dispatches more and more workgroups, each of the size that a dispatch of all layers has or of what the device
/// allows.
/// @error device_error, out_of_memory, device_lost
inline residency probe_residency(const gpu::device& on) {
  constexpr std::uint32_t most = 4096;
  residency out{.invocations = std::min(512u, on.limits().max_workgroup_invocations),
                .shared_memory_bytes = std::min<std::uint32_t>(kernels::layers::resident_shared_memory_bytes,
                                                               on.limits().max_shared_memory_bytes),
                .turns = 1u << 14};
  const std::array constants{gpu::specialization{0, out.invocations},
                             gpu::specialization{1, out.shared_memory_bytes / 4}};
  const gpu::pipeline kernel(on, {.name = "residency",
                                  .spirv = kernels::whole(kernels::spirv::residency_parts),
                                  .constants = constants,
                                  .push_constant_bytes = 12,
                                  .required_subgroup_size = 0,
                                  .full_subgroups = false});
  const gpu::buffer counters(on, 12, gpu::placement::readback, "the residency probe");
  gpu::queue line(on);
  const auto all_saw_all = [&](std::uint32_t groups) {
    std::array<std::byte, 12> push{};
    const std::uint64_t address = counters.address();
    std::memcpy(push.data(), &address, sizeof address);
    std::memcpy(push.data() + 8, &out.turns, sizeof out.turns);
    for (int time = 0; time < 3; ++time) {
      gpu::recorder to(on, "the residency probe");
      to.fill(counters, 0, counters.size_bytes(), 0);
      to.barrier();
      to.dispatch(kernel, push, {groups, 1, 1});
      const gpu::recording made = to.finish();
      const VkCommandBuffer handle = made.handle();
      line.wait(line.submit({&handle, 1}, made.name()));
      std::array<std::uint32_t, 2> found{};
      std::memcpy(found.data(), counters.mapped().data(), sizeof found);
      if (found[1] != groups) return false;
    }
    out.at_once = groups;
    return true;
  };
  std::uint32_t groups = 1;
  while (groups <= most && all_saw_all(groups)) groups *= 2;
  out.tried = std::min(groups, most);
  for (std::uint32_t step = groups / 4; step != 0 && groups <= most; step /= 2) all_saw_all(out.at_once + step);
  return out;
}

}  // namespace intaglio::tool
