// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>

#include <thread>

using namespace intaglio;

TEST_CASE("submissions are counted and waited for in order") {
  const checked_device checked;
  const gpu::recording nothing = gpu::recorder(checked.device, "nothing").finish();
  gpu::queue line(checked.device);
  const VkCommandBuffer handle = nothing.handle();
  CHECK(line.submit({&handle, 1}, "one") == 1);
  CHECK(line.submit({&handle, 1}, "two") == 2);
  CHECK(line.submit({}, "none at all") == 3);
  line.wait(2);
  CHECK(line.finished(1));
  line.wait(3);
  CHECK(line.finished(3));
  CHECK_THROWS_AS(line.wait(4), argument_error);
  gpu::queue moved = std::move(line);
  CHECK(moved.submitted() == 3);
  CHECK(moved.submit({&handle, 1}, "four") == 4);
}

TEST_CASE("several lines share the device from several threads") {
  const checked_device checked;
  const gpu::recording nothing = gpu::recorder(checked.device, "nothing").finish();
  std::vector<std::jthread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      gpu::queue line(checked.device);
      const VkCommandBuffer handle = nothing.handle();
      for (int run = 0; run < 50; ++run) line.wait(line.submit({&handle, 1}, "turn"));
      ++done;
    });
  threads.clear();
  CHECK(done == 4);
  CHECK(checked.device.counters().submits == 200);
}

TEST_CASE("a device that does not answer in time is lost, by name of what ran") {
  faults::the_shim().reset();
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    options.validate = gpu::validation::off;
    const gpu::device on(options);
    const gpu::recording nothing = gpu::recorder(on, "nothing").finish();
    gpu::queue line(on);
    const VkCommandBuffer handle = nothing.handle();
    line.submit({&handle, 1}, "a very slow layer");
    faults::the_shim().arm(faults::id::vkWaitSemaphores, 0, VK_TIMEOUT);
    try {
      line.wait(1, std::chrono::milliseconds(5));
      FAIL("nothing was thrown");
    } catch (const device_lost& lost) {
      CHECK(std::string(lost.what()).find("no end after 5 ms") != std::string::npos);
      CHECK(lost.device() == on.label());
    }
    CHECK(on.lost());
    CHECK_THROWS_AS(line.submit({&handle, 1}, "after the end"), device_lost);
    CHECK_THROWS_AS(gpu::recorder(on, "after the end"), device_lost);
    CHECK_THROWS_AS(gpu::buffer(on, 64, gpu::placement::shared, "after the end"), device_lost);
  }
  CHECK(faults::the_shim().live().empty());
}
