// SPDX-License-Identifier: MIT
#include "intaglio/gpu/host_features.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

#include "gpu/checked_device.hpp"
#include "gpu/lent_device.hpp"
#include "intaglio/gpu/device.hpp"

using namespace intaglio;

TEST_CASE("a host enables all features that its device offers and the library can use", "[gpu]") {
  const gpu::instance host(gpu::loader(&faults::entry), gpu::validation_from_environment());
  const VkPhysicalDevice physical = host.physical_devices().front();
  const auto description = gpu::describe(host, physical, 0);
  const gpu::host_features found = gpu::features_for(&faults::entry, host.handle(), physical);
  for (const gpu::feature_entry& each : gpu::feature_table) {
    CAPTURE(each.name);
    const bool checks_bounds = each.name.starts_with("robustBufferAccess");
    CHECK(gpu::contains(found.enabled, each.id) ==
          (each.required || (gpu::contains(description.features, each.id) && !checks_bounds)));
  }
  for (std::size_t i = 0; i < found.extensions.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) CHECK(std::strcmp(found.extensions[i], found.extensions[k]) != 0);

  gpu::feature_chain chain;
  found.enable_in(chain);
  lent_device of_host(host, physical, *description.queue_family, found.enabled);
  of_host.make(chain, found.extensions);
  {
    const gpu::device on(of_host.lent);
    // What the library enables on a device of its own.
    const gpu::device own;
    CHECK(on.has(gpu::feature::shader_int64) == own.has(gpu::feature::shader_int64));
    CHECK(on.has(gpu::feature::subgroup_extended_types) == own.has(gpu::feature::subgroup_extended_types));
  }
  CHECK(host.messages().count() == 0);
  host.call().vkDestroyDevice(of_host.lent.device, nullptr);
}
