// SPDX-License-Identifier: MIT
// The one place that includes Vulkan: Vulkan-Hpp for its typed structs, and a table of C function pointers for the
// calls. So no macro with which a host program configures Vulkan-Hpp (exceptions, constructors, smart handles) changes
// what this room does, and nothing links to libvulkan. The table has what is called: Vulkan-Hpp's own dispatcher asks
// for 578 functions by name, which costs each program 57 kB.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <vulkan/vulkan.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace intaglio::gpu {

namespace vk = VULKAN_HPP_NAMESPACE;

// clang-format off
// Asked for with an instance: what has to do with the instance and its physical devices.
#define INTAGLIO_INSTANCE_FUNCTIONS(row) \
  row(vkCreateDebugUtilsMessengerEXT) row(vkCreateDevice) row(vkDestroyDebugUtilsMessengerEXT) \
  row(vkEnumerateDeviceExtensionProperties) row(vkEnumeratePhysicalDevices) row(vkGetDeviceProcAddr) \
  row(vkGetPhysicalDeviceFeatures2) row(vkGetPhysicalDeviceMemoryProperties) \
  row(vkGetPhysicalDeviceMemoryProperties2) row(vkGetPhysicalDeviceProperties) row(vkGetPhysicalDeviceProperties2) \
  row(vkGetPhysicalDeviceQueueFamilyProperties)

#ifdef VK_EXT_device_fault
#define INTAGLIO_FAULT_FUNCTION(row) row(vkGetDeviceFaultInfoEXT)
#else
#define INTAGLIO_FAULT_FUNCTION(row)
#endif

// Asked for with a device, or with its instance: what is called on a device, its queue and its command buffers.
#define INTAGLIO_DEVICE_FUNCTIONS(row) \
  row(vkAllocateCommandBuffers) row(vkAllocateMemory) row(vkBeginCommandBuffer) row(vkBindBufferMemory) \
  row(vkCmdBindPipeline) row(vkCmdCopyBuffer) row(vkCmdDispatch) row(vkCmdFillBuffer) row(vkCmdPipelineBarrier2) \
  row(vkCmdPushConstants) row(vkCmdResetQueryPool) row(vkCmdWriteTimestamp2) row(vkCreateBuffer) \
  row(vkCreateCommandPool) row(vkCreateComputePipelines) row(vkCreatePipelineCache) row(vkCreatePipelineLayout) \
  row(vkCreateQueryPool) row(vkCreateSemaphore) row(vkCreateShaderModule) row(vkDestroyBuffer) \
  row(vkDestroyCommandPool) row(vkDestroyDevice) row(vkDestroyPipeline) row(vkDestroyPipelineCache) \
  row(vkDestroyPipelineLayout) row(vkDestroyQueryPool) row(vkDestroySemaphore) row(vkDestroyShaderModule) \
  row(vkEndCommandBuffer) row(vkFreeMemory) row(vkGetBufferDeviceAddress) row(vkGetBufferMemoryRequirements) \
  row(vkGetDeviceQueue) row(vkGetMemoryHostPointerPropertiesEXT) row(vkGetPipelineCacheData) \
  row(vkGetPipelineExecutableStatisticsKHR) row(vkGetQueryPoolResults) row(vkGetSemaphoreCounterValue) \
  row(vkMapMemory) row(vkQueueSubmit) row(vkQueueWaitIdle) row(vkResetCommandPool) row(vkWaitSemaphores) \
  INTAGLIO_FAULT_FUNCTION(row)
// clang-format on

/// The Vulkan functions that the library calls. Null: not looked up, or the driver has none of that name.
struct dispatch_table {
#define INTAGLIO_MEMBER(name) PFN_##name name = nullptr;
  INTAGLIO_INSTANCE_FUNCTIONS(INTAGLIO_MEMBER)
  INTAGLIO_DEVICE_FUNCTIONS(INTAGLIO_MEMBER)
#undef INTAGLIO_MEMBER

  /// Looks all functions up through an instance; those of devices then work for each of its devices.
  [[gnu::cold]] void look_up(VkInstance of, PFN_vkGetInstanceProcAddr entry) {
#define INTAGLIO_LOOK_UP(name) name = reinterpret_cast<PFN_##name>(entry(of, #name));
    INTAGLIO_INSTANCE_FUNCTIONS(INTAGLIO_LOOK_UP)
    INTAGLIO_DEVICE_FUNCTIONS(INTAGLIO_LOOK_UP)
#undef INTAGLIO_LOOK_UP
  }

  /// Looks the functions of one device up: its driver's own, with no dispatch by the loader in between.
  [[gnu::cold]] void look_up(VkDevice of, PFN_vkGetDeviceProcAddr entry) {
#define INTAGLIO_LOOK_UP(name) name = reinterpret_cast<PFN_##name>(entry(of, #name));
    INTAGLIO_DEVICE_FUNCTIONS(INTAGLIO_LOOK_UP)
#undef INTAGLIO_LOOK_UP
  }
};

#undef INTAGLIO_INSTANCE_FUNCTIONS
#undef INTAGLIO_DEVICE_FUNCTIONS
#undef INTAGLIO_FAULT_FUNCTION

/// The C view of a Vulkan-Hpp struct, as the function pointers take it.
template <class Struct>
const typename Struct::NativeType* native(const Struct& value) noexcept {
  return reinterpret_cast<const typename Struct::NativeType*>(&value);
}
template <class Struct>
typename Struct::NativeType* native(Struct& value) noexcept {
  return reinterpret_cast<typename Struct::NativeType*>(&value);
}

}  // namespace intaglio::gpu
