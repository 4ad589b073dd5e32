// SPDX-License-Identifier: MIT
// Reads the values of gpu/device_description.hpp from the driver.
#pragma once

#include <intaglio/gpu/features.hpp>
#include <intaglio/gpu/instance.hpp>
#include <intaglio/gpu/known_drivers.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace intaglio::gpu {

namespace detail {

/// Vulkan's type of a device as device_type.
inline device_type type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return device_type::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return device_type::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return device_type::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return device_type::cpu;
    default:
      return device_type::other;
  }
}

/// The text of a fixed-size array of Vulkan's, up to its 0, without control characters.
template <std::size_t Size>
std::string fixed_text(const char (&text)[Size]) {
  return printable(std::string_view(text, static_cast<std::size_t>(std::find(text, text + Size, '\0') - text)));
}

/// Finds the queue families. For compute: one without graphics, which runs beside a desktop's drawing, else any with
/// compute. For copies: one that only copies, if the device has it.
inline void find_queue_families(const dispatch_table& call, VkPhysicalDevice physical, device_description& out) {
  std::uint32_t count = 0;
  call.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  call.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  for (const bool alone : {true, false}) {
    for (std::uint32_t family = 0; family < count && !out.queue_family; ++family) {
      const auto flags = families[family].queueFlags;
      if ((flags & VK_QUEUE_COMPUTE_BIT) == 0 || (alone && (flags & VK_QUEUE_GRAPHICS_BIT) != 0)) continue;
      out.queue_family = family;
      out.limits.timestamp_bits = families[family].timestampValidBits;
    }
  }
  constexpr VkQueueFlags allowed =
      VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;  // no video, no optical flow
  for (std::uint32_t family = 0; family < count && !out.copy_family; ++family)
    if (const auto flags = families[family].queueFlags; (flags & VK_QUEUE_TRANSFER_BIT) != 0 && (flags & ~allowed) == 0)
      out.copy_family = family;
}

/// Reads a device's name, driver, identity and limits.
/// @param host_pointers whether the device imports memory of the host  @param multiprocessors whether the driver
/// reports their number
[[gnu::cold]] inline void read_properties(const dispatch_table& call, VkPhysicalDevice physical, bool host_pointers,
                                          bool multiprocessors, device_description& out) {
  typed<VkPhysicalDeviceProperties2> properties;
  typed<VkPhysicalDeviceVulkan11Properties> core11;
  typed<VkPhysicalDeviceVulkan12Properties> core12;
  typed<VkPhysicalDeviceVulkan13Properties> core13;
  typed<VkPhysicalDeviceExternalMemoryHostPropertiesEXT> host;
  properties.pNext = &core11;
  core11.pNext = &core12;
  core12.pNext = &core13;
  typed<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV> multi;
  void** end = &core13.pNext;
  const auto link = [&](bool wanted, auto& part) {
    if (!wanted) return;
    *end = &part;
    end = &part.pNext;
  };
  link(host_pointers, host);
  link(multiprocessors, multi);
  call.vkGetPhysicalDeviceProperties2(physical, &properties);

  const VkPhysicalDeviceLimits& limits = properties.properties.limits;
  const VkPhysicalDeviceVulkan11Properties& p11 = core11;
  const VkPhysicalDeviceVulkan12Properties& p12 = core12;
  const VkPhysicalDeviceVulkan13Properties& p13 = core13;
  std::copy_n(p11.deviceUUID, VK_UUID_SIZE, out.uuid.begin());
  std::copy_n(p11.driverUUID, VK_UUID_SIZE, out.driver_uuid.begin());
  out.driver_name = fixed_text(p12.driverName);
  out.driver_info = fixed_text(p12.driverInfo);
  out.driver_id = static_cast<std::uint32_t>(p12.driverID);
  if (const known_driver driver = of_driver(out.driver_id); driver.state == driver_state::crashes)
    out.missing.push_back("another driver (" + std::string(driver.why) + ")");

  device_limits& to = out.limits;
  to.max_push_constant_bytes = limits.maxPushConstantsSize;
  to.max_shared_memory_bytes = limits.maxComputeSharedMemorySize;
  to.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  std::copy_n(limits.maxComputeWorkGroupSize, 3, to.max_workgroup_size.begin());
  std::copy_n(limits.maxComputeWorkGroupCount, 3, to.max_workgroup_count.begin());
  to.subgroup_size = p11.subgroupSize;
  to.min_subgroup_size = p13.minSubgroupSize;
  to.max_subgroup_size = p13.maxSubgroupSize;
  to.max_subgroups_per_workgroup = p13.maxComputeWorkgroupSubgroups;
  to.subgroup_size_selectable = (p13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  to.subgroup_operations =
      (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 ? p11.subgroupSupportedOperations : 0;
  to.int8_dot_product_accelerated = p13.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
  to.mixed_dot_product_accelerated = p13.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE;
  to.multiprocessors = multiprocessors ? multi.shaderSMCount : 0;
  to.max_allocation_bytes = p11.maxMemoryAllocationSize;
  to.max_buffer_bytes = p13.maxBufferSize;
  to.max_storage_range_bytes = limits.maxStorageBufferRange;
  to.host_pointer_alignment = host_pointers ? static_cast<std::uint64_t>(host.minImportedHostPointerAlignment) : 0;
  to.timestamp_period_ns = limits.timestampPeriod;
}

}  // namespace detail

/// Reads everything that the driver says of one physical device. Requirements of intaglio that it lacks are listed in
/// `missing`; they are no error.
/// @error device_error, out_of_memory: the driver's own calls failed
[[gnu::cold]] inline device_description describe(const instance& from, VkPhysicalDevice physical, std::uint32_t index) {
  const dispatch_table& call = from.call();
  device_description out;
  out.index = index;
  VkPhysicalDeviceProperties first{};
  call.vkGetPhysicalDeviceProperties(physical, &first);
  out.name = detail::fixed_text(first.deviceName);
  out.type = detail::type_of(first.deviceType);
  out.vendor_id = first.vendorID;
  out.device_id = first.deviceID;
  out.driver_version = first.driverVersion;
  out.api_version = first.apiVersion;
  VkPhysicalDeviceMemoryProperties memory{};
  call.vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (std::uint32_t heap = 0; heap < memory.memoryHeapCount; ++heap)
    out.heaps.push_back(
        {memory.memoryHeaps[heap].size, (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0});
  detail::find_queue_families(call, physical, out);
  if (!out.queue_family) out.missing.emplace_back("a queue family with compute");
  if (out.api_version < VK_API_VERSION_1_3) {  // the structs of Vulkan 1.3 must not be queried
    out.missing.push_back("Vulkan 1.3 (found " + version_text(out.api_version) + ")");
    return out;
  }

  const auto extensions = enumerate<VkExtensionProperties>(
      out.name, "list the device's extensions", [&](std::uint32_t* count, VkExtensionProperties* items) {
        return call.vkEnumerateDeviceExtensionProperties(physical, nullptr, count, items);
      });
  const auto present = [&](std::string_view wanted) {
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const auto& extension) { return wanted == extension.extensionName; });
  };
  feature_chain supported;
  supported.link_extensions(present);
  call.vkGetPhysicalDeviceFeatures2(physical, &supported.base);
  for (const auto& entry : feature_table) {
    const bool known = entry.extension != nullptr || entry.member != nullptr;
    const bool offered = known && (entry.extension == nullptr || present(entry.extension)) &&
                         (entry.member == nullptr || *entry.member(supported) == VK_TRUE);
    out.features.set(static_cast<std::size_t>(entry.id), offered);
    if (entry.required && !offered) out.missing.push_back("feature " + std::string(entry.name));
  }
  detail::read_properties(call, physical, contains(out.features, feature::external_memory_host),
                          present("VK_NV_shader_sm_builtins"), out);
  if (contains(out.features, feature::cooperative_matrix))
    out.matrix_shapes = list_matrix_shapes(from, physical, out.name);
  return out;
}

/// Every device that the loader knows, usable or not, in the loader's order.
/// @error device_error: no device
[[gnu::cold]] inline std::vector<device_description> list_devices(const instance& from) {
  return translated([&] {
    std::vector<device_description> out;
    for (const VkPhysicalDevice physical : from.physical_devices())
      out.push_back(describe(from, physical, static_cast<std::uint32_t>(out.size())));
    return out;
  });
}

}  // namespace intaglio::gpu
