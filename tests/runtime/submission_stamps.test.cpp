// SPDX-License-Identifier: MIT
#include "intaglio/runtime/submission_stamps.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/gpu/queue.hpp"

using namespace intaglio;

TEST_CASE("the time between stamps is that of the commands between them, in each run") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const runtime::submission_stamps stamps(on);
  CHECK(stamps.empty() == (on.limits().timestamp_bits == 0));
  if (stamps.empty()) return;
  const gpu::buffer memory(on, std::uint64_t{64} << 20, gpu::placement::device_local, "memory to fill");
  const gpu::recording work = gpu::recorder(on, "fill").fill(memory, 0, memory.size_bytes(), 7).finish();
  gpu::queue line(on);
  const auto recorded = on.counters().recorded_commands.load();
  const auto run = [&](std::size_t times) {
    std::vector<VkCommandBuffer> all(times, work.handle());
    all.insert(all.begin(), stamps.first());
    all.push_back(stamps.last());
    const auto from = std::chrono::steady_clock::now();
    line.wait(line.submit(all, "stamped work"));
    const double host_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
    const std::optional<double> took_ms = stamps.took_ms();
    REQUIRE(took_ms.has_value());
    CHECK(*took_ms > 0);
    CHECK(*took_ms <= host_ms);
    return *took_ms;
  };
  run(1);  // memory may be given to the program at its first use
  double one_ms = HUGE_VAL;
  for (int i = 0; i < 3; ++i) one_ms = std::fmin(one_ms, run(1));  // another program may hold one of them up
  CHECK(run(16) > 2 * one_ms);
  CHECK(on.counters().recorded_commands == recorded);
}
