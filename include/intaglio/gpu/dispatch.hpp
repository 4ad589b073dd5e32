// SPDX-License-Identifier: MIT
// Vulkan's C interface: its structs with their sType set, and a table of pointers to the functions that are called, so
// nothing links to libvulkan. Vulkan-Hpp is not used: it would cost each file that includes gpu/ 1.3 CPU seconds and
// 280 MB of the compiler's memory, and its dispatcher would add 57 kB to each program.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <vulkan/vulkan_core.h>

namespace intaglio::gpu {

// clang-format off
// Functions of instances and physical devices. They are looked up with an instance.
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

// Functions of a device, its queue and its command buffers. They are looked up with a device or with its instance.
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

/// The Vulkan functions that the library calls. Null: not looked up, or the driver does not have the function.
struct dispatch_table {
#define INTAGLIO_MEMBER(name) PFN_##name name = nullptr;
  INTAGLIO_INSTANCE_FUNCTIONS(INTAGLIO_MEMBER)
  INTAGLIO_DEVICE_FUNCTIONS(INTAGLIO_MEMBER)
#undef INTAGLIO_MEMBER

  /// Looks all functions up through an instance. Device functions then work for each of its devices.
  [[gnu::cold]] void look_up(VkInstance of, PFN_vkGetInstanceProcAddr entry) {
#define INTAGLIO_LOOK_UP(name) name = reinterpret_cast<PFN_##name>(entry(of, #name));
    INTAGLIO_INSTANCE_FUNCTIONS(INTAGLIO_LOOK_UP)
    INTAGLIO_DEVICE_FUNCTIONS(INTAGLIO_LOOK_UP)
#undef INTAGLIO_LOOK_UP
  }

  /// Looks the functions of one device up: the driver's own, without dispatch by the loader.
  [[gnu::cold]] void look_up(VkDevice of, PFN_vkGetDeviceProcAddr entry) {
#define INTAGLIO_LOOK_UP(name) name = reinterpret_cast<PFN_##name>(entry(of, #name));
    INTAGLIO_DEVICE_FUNCTIONS(INTAGLIO_LOOK_UP)
#undef INTAGLIO_LOOK_UP
  }
};

#undef INTAGLIO_INSTANCE_FUNCTIONS
#undef INTAGLIO_DEVICE_FUNCTIONS
#undef INTAGLIO_FAULT_FUNCTION

// clang-format off
#define INTAGLIO_STRUCTURES(row) \
  row(ApplicationInfo, APPLICATION_INFO) \
  row(BufferCreateInfo, BUFFER_CREATE_INFO) \
  row(BufferDeviceAddressInfo, BUFFER_DEVICE_ADDRESS_INFO) \
  row(CommandBufferAllocateInfo, COMMAND_BUFFER_ALLOCATE_INFO) \
  row(CommandBufferBeginInfo, COMMAND_BUFFER_BEGIN_INFO) \
  row(CommandPoolCreateInfo, COMMAND_POOL_CREATE_INFO) \
  row(ComputePipelineCreateInfo, COMPUTE_PIPELINE_CREATE_INFO) \
  row(DebugUtilsMessengerCreateInfoEXT, DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT) \
  row(DependencyInfo, DEPENDENCY_INFO) \
  row(DeviceCreateInfo, DEVICE_CREATE_INFO) \
  row(DeviceQueueCreateInfo, DEVICE_QUEUE_CREATE_INFO) \
  row(ExternalMemoryBufferCreateInfo, EXTERNAL_MEMORY_BUFFER_CREATE_INFO) \
  row(ImportMemoryHostPointerInfoEXT, IMPORT_MEMORY_HOST_POINTER_INFO_EXT) \
  row(InstanceCreateInfo, INSTANCE_CREATE_INFO) \
  row(MemoryAllocateFlagsInfo, MEMORY_ALLOCATE_FLAGS_INFO) \
  row(MemoryAllocateInfo, MEMORY_ALLOCATE_INFO) \
  row(MemoryBarrier2, MEMORY_BARRIER_2) \
  row(MemoryHostPointerPropertiesEXT, MEMORY_HOST_POINTER_PROPERTIES_EXT) \
  row(PhysicalDeviceExternalMemoryHostPropertiesEXT, PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT) \
  row(PhysicalDeviceFeatures2, PHYSICAL_DEVICE_FEATURES_2) \
  row(PhysicalDeviceMemoryBudgetPropertiesEXT, PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) \
  row(PhysicalDeviceMemoryProperties2, PHYSICAL_DEVICE_MEMORY_PROPERTIES_2) \
  row(PhysicalDevicePipelineExecutablePropertiesFeaturesKHR, \
      PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR) \
  row(PhysicalDeviceProperties2, PHYSICAL_DEVICE_PROPERTIES_2) \
  row(PhysicalDeviceRobustness2FeaturesEXT, PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT) \
  row(PhysicalDeviceShaderSMBuiltinsPropertiesNV, PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV) \
  row(PhysicalDeviceVulkan11Features, PHYSICAL_DEVICE_VULKAN_1_1_FEATURES) \
  row(PhysicalDeviceVulkan11Properties, PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) \
  row(PhysicalDeviceVulkan12Features, PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) \
  row(PhysicalDeviceVulkan12Properties, PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES) \
  row(PhysicalDeviceVulkan13Features, PHYSICAL_DEVICE_VULKAN_1_3_FEATURES) \
  row(PhysicalDeviceVulkan13Properties, PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES) \
  row(PipelineCacheCreateInfo, PIPELINE_CACHE_CREATE_INFO) \
  row(PipelineCreationFeedbackCreateInfo, PIPELINE_CREATION_FEEDBACK_CREATE_INFO) \
  row(PipelineExecutableInfoKHR, PIPELINE_EXECUTABLE_INFO_KHR) \
  row(PipelineExecutableStatisticKHR, PIPELINE_EXECUTABLE_STATISTIC_KHR) \
  row(PipelineLayoutCreateInfo, PIPELINE_LAYOUT_CREATE_INFO) \
  row(PipelineShaderStageCreateInfo, PIPELINE_SHADER_STAGE_CREATE_INFO) \
  row(PipelineShaderStageRequiredSubgroupSizeCreateInfo, PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO) \
  row(QueryPoolCreateInfo, QUERY_POOL_CREATE_INFO) \
  row(SemaphoreCreateInfo, SEMAPHORE_CREATE_INFO) \
  row(SemaphoreTypeCreateInfo, SEMAPHORE_TYPE_CREATE_INFO) \
  row(SemaphoreWaitInfo, SEMAPHORE_WAIT_INFO) \
  row(ShaderModuleCreateInfo, SHADER_MODULE_CREATE_INFO) \
  row(SubmitInfo, SUBMIT_INFO) \
  row(TimelineSemaphoreSubmitInfo, TIMELINE_SEMAPHORE_SUBMIT_INFO) \
  row(ValidationFeaturesEXT, VALIDATION_FEATURES_EXT)
// clang-format on

/// The sType of a struct that the library fills.
template <class Struct>
inline constexpr VkStructureType structure_type = VK_STRUCTURE_TYPE_MAX_ENUM;
#define INTAGLIO_STRUCTURE(name, type) \
  template <>                          \
  inline constexpr VkStructureType structure_type<Vk##name> = VK_STRUCTURE_TYPE_##type;
INTAGLIO_STRUCTURES(INTAGLIO_STRUCTURE)
#ifdef VK_EXT_device_fault
INTAGLIO_STRUCTURE(DeviceFaultCountsEXT, DEVICE_FAULT_COUNTS_EXT)
INTAGLIO_STRUCTURE(DeviceFaultInfoEXT, DEVICE_FAULT_INFO_EXT)
INTAGLIO_STRUCTURE(PhysicalDeviceFaultFeaturesEXT, PHYSICAL_DEVICE_FAULT_FEATURES_EXT)
#endif
#undef INTAGLIO_STRUCTURE
#undef INTAGLIO_STRUCTURES

/// A struct of Vulkan with its sType set and all else zero. It converts to the plain struct.
template <class Struct>
struct typed : Struct {
  static_assert(structure_type<Struct> != VK_STRUCTURE_TYPE_MAX_ENUM, "INTAGLIO_STRUCTURES has no row for this struct");
  typed() noexcept : Struct{} { this->sType = structure_type<Struct>; }
};

}  // namespace intaglio::gpu
