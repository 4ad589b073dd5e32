// SPDX-License-Identifier: MIT
#include <intaglio/gpu/known_drivers.hpp>

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

using namespace intaglio;

TEST_CASE("drivers are named as Vulkan numbers them, each once") {
  CHECK(gpu::of_driver(VK_DRIVER_ID_NVIDIA_PROPRIETARY).state == gpu::driver_state::has_run);
  CHECK(gpu::of_driver(VK_DRIVER_ID_MESA_LLVMPIPE).state == gpu::driver_state::has_run);
  CHECK(gpu::of_driver(VK_DRIVER_ID_GOOGLE_SWIFTSHADER).state == gpu::driver_state::crashes);
  CHECK(gpu::of_driver(VK_DRIVER_ID_MESA_RADV).state == gpu::driver_state::unknown);
  std::set<std::uint32_t> ids;
  for (const gpu::known_driver& each : gpu::known_drivers) {
    CHECK(ids.insert(each.id).second);
    CHECK(each.why.empty() == (each.state != gpu::driver_state::crashes));
  }
}

TEST_CASE("a driver that crashes is refused by its name before a device is made") {
  struct telling {
    explicit telling(VkDriverId as) { faults::reported_driver = as; }
    ~telling() { faults::reported_driver = VkDriverId{}; }
  } const as(VK_DRIVER_ID_GOOGLE_SWIFTSHADER);
  faults::the_shim().reset();
  gpu::device_options options;
  options.entry = &faults::entry;
  std::string refusal;
  try {
    const gpu::device on(options);
  } catch (const device_error& problem) { refusal = problem.what(); }
  CHECK(refusal.find("SwiftShader ends the process") != std::string::npos);
  CHECK(refusal.size() <= 400);
  CHECK(faults::the_shim().calls(faults::id::vkCreateDevice) == 0);
}
