// SPDX-License-Identifier: MIT
// The first device by Vulkan alone, without the library, for programs that make mistakes which a layer has to see.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// Ends the program where a call failed.
inline void demand(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", call, static_cast<int>(result));
  std::exit(1);
}

/// Lives as long as its scope. Ends the program where there is no device.
class bare_device {
 public:
  bare_device() {
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo instance_info{};
    instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance_info.pApplicationInfo = &application;
    demand(vkCreateInstance(&instance_info, nullptr, &instance_), "vkCreateInstance");
    std::uint32_t count = 1;
    VkPhysicalDevice physical{};
    if (vkEnumeratePhysicalDevices(instance_, &count, &physical) < 0 || count == 0) std::exit(1);
    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info{};  // family 0 of lavapipe does everything
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info{};
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    demand(vkCreateDevice(physical, &device_info, nullptr, &device_), "vkCreateDevice");
  }
  ~bare_device() {
    vkDestroyDevice(device_, nullptr);
    vkDestroyInstance(instance_, nullptr);
  }
  bare_device(const bare_device&) = delete;
  bare_device& operator=(const bare_device&) = delete;

  operator VkDevice() const { return device_; }

 private:
  VkInstance instance_{};
  VkDevice device_{};
};
