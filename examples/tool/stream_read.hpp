// SPDX-License-Identifier: MIT
// Measures how fast a device reads memory from end to end; the speed of decode is compared with it. Includes Vulkan.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>
#include <intaglio/kernels/module_text.hpp>
#include <intaglio/kernels/spirv/stream_read.hpp>
#include <intaglio/runtime/placement.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "warmth.hpp"

namespace intaglio::tool {

/// Bytes per second of the best of several reads of one large buffer. On GPUs by the device's timestamps, on a warm
/// device (warmth): a submission by the host's clock takes 48 us more, a seventh of a read of 1 GiB. On CPU drivers by
/// the host's clock, or by the driver's own copy where that is faster, since a copy reads every byte too (they copy
/// with the widest instructions, and kernels lane by lane).
/// @error device_error, out_of_memory
inline double stream_read_rate(const gpu::device& on) {
  using clock = std::chrono::steady_clock;
  const bool cpu = on.description().type == gpu::device_type::cpu;
  constexpr std::uint32_t workgroup = 256, unroll = 8;
  const std::uint32_t groups = cpu ? 64 : 16384;
  const std::uint64_t round_bytes = std::uint64_t{16} * workgroup * groups * unroll;
  const std::uint64_t wanted = std::min<std::uint64_t>({cpu ? std::uint64_t{128} << 20 : std::uint64_t{2} << 30,
                                                        runtime::available_memory(on) / 4, on.limits().max_buffer_bytes,
                                                        on.limits().max_allocation_bytes});
  const auto rounds = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, wanted / round_bytes));
  const std::uint64_t half = rounds * round_bytes / 2;
  const gpu::buffer source(on, rounds * round_bytes, gpu::placement::device_local, "the streaming read"),
      sink(on, 4, gpu::placement::device_local, "the streaming read");
  const std::array constants{gpu::specialization{0, workgroup}};
  const gpu::pipeline kernel(on, {.name = "stream_read",
                                  .spirv = kernels::whole(kernels::spirv::stream_read_parts),
                                  .constants = constants,
                                  .push_constant_bytes = 20,
                                  .required_subgroup_size = 0,
                                  .full_subgroups = false});
  std::array<std::byte, 20> push{};
  const std::uint64_t addresses[] = {source.address(), sink.address()};
  std::memcpy(push.data(), addresses, sizeof addresses);
  std::memcpy(push.data() + 16, &rounds, sizeof rounds);

  gpu::queue line(on);
  gpu::recorder first(on, "fill what is read");
  first.fill(source, 0, source.size_bytes(), 0x01020304);
  const gpu::recording filled = first.finish();
  const VkCommandBuffer handle = filled.handle();
  line.wait(line.submit({&handle, 1}, filled.name()));
  const double bytes = static_cast<double>(source.size_bytes());
  if (!cpu && on.limits().timestamp_bits != 0) {
    const auto reads = warmth(on).times(5, 3, [&](gpu::recorder& to) {
      for (int i = 0; i < 5; ++i) to.dispatch(kernel, push, {groups, 1, 1}).barrier();
    });
    return bytes / *std::min_element(reads.begin(), reads.end()) * 1e9;
  }
  gpu::recorder second(on, "streaming read");
  second.dispatch(kernel, push, {groups, 1, 1});
  const gpu::recording read = second.finish();
  gpu::recorder third(on, "copy");
  third.copy(source, 0, source, half, half);
  const gpu::recording copied = third.finish();
  const auto fastest = [&](const gpu::recording& commands) {
    const VkCommandBuffer one = commands.handle();
    double best = 1e30;
    const auto start = clock::now();
    for (int run = 0; run < 12 && (run < 3 || clock::now() - start < std::chrono::milliseconds(400)); ++run) {
      const auto begin = clock::now();
      line.wait(line.submit({&one, 1}, commands.name()));
      best = std::min(best, std::chrono::duration<double>(clock::now() - begin).count());
    }
    return best;
  };
  return std::max(bytes / fastest(read), static_cast<double>(half) / fastest(copied));
}

}  // namespace intaglio::tool
