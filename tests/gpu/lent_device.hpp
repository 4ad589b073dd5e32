// SPDX-License-Identifier: MIT
// A device that a host program makes and lends.
#pragma once

#include "gpu/fault_shim.hpp"

#include <intaglio/gpu/device.hpp>

#include <catch2/catch_test_macros.hpp>
#include <vector>

/// What a host lends, on its first queue of the family, before and after its device is made.
struct lent_device {
  const intaglio::gpu::instance& host;
  intaglio::gpu::host_device lent;

  lent_device(const intaglio::gpu::instance& of, VkPhysicalDevice physical, std::uint32_t queue_family,
              const intaglio::gpu::feature_set& enabled)
      : host(of), lent{.entry = &faults::entry,
                       .instance = of.handle(),
                       .physical = physical,
                       .queue_family = queue_family,
                       .enabled = enabled} {}

  void make(const intaglio::gpu::feature_chain& chain, const std::vector<const char*>& extensions = {}) {
    const float priority = 1;
    intaglio::gpu::typed<VkDeviceQueueCreateInfo> queue_info;
    queue_info.queueFamilyIndex = lent.queue_family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    intaglio::gpu::typed<VkDeviceCreateInfo> info;
    info.pNext = chain.head();
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    REQUIRE(host.call().vkCreateDevice(lent.physical, &info, nullptr, &lent.device) == VK_SUCCESS);
    host.call().vkGetDeviceQueue(lent.device, lent.queue_family, 0, &lent.queue);
  }
};
