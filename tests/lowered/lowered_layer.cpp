// SPDX-License-Identifier: MIT
// A Vulkan layer in front of a driver that reports smaller limits and fewer features: those of a class of
// plan/device_classes.hpp, which the variable INTAGLIO_LOWERED_TO names. The validation layer above it checks a program
// against these limits. The device reports that it is an integrated GPU, since the classes are GPUs. The driver's
// computations stay unchanged: its subgroups keep their size, which may be narrower than the class's.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <type_traits>

#include "intaglio/plan/device_classes.hpp"

namespace {

using intaglio::kernels::device_class;

/// The class that the environment names; a wrong name ends the process, since a test would run at full limits.
const device_class& lowered_to() {
  static const device_class& chosen = []() -> const device_class& {
    const char* name = std::getenv("INTAGLIO_LOWERED_TO");
    for (const auto* each : intaglio::plan::classes::other_gpus)
      if (name != nullptr && each->name == name) return *each;
    for (const auto* each : intaglio::plan::classes::gpus)
      if (name != nullptr && each->name == name) return *each;
    std::fprintf(stderr, "INTAGLIO_LOWERED_TO: expected a class of a GPU, found %s\n", name == nullptr ? "none" : name);
    std::abort();
  }();
  return chosen;
}

/// The next layer or driver, found while the instance is made: later the loader would answer with the whole chain
/// again.
struct below {
  PFN_vkGetInstanceProcAddr get = nullptr;
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkDestroyInstance destroy = nullptr;
  PFN_vkCreateDevice create_device = nullptr;
  PFN_vkGetPhysicalDeviceProperties properties = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 properties2 = nullptr;
  PFN_vkGetPhysicalDeviceFeatures features = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 features2 = nullptr;

  below() = default;
  below(PFN_vkGetInstanceProcAddr from, VkInstance of) : get(from), handle(of) {
    const auto find = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(get(handle, name));
    };
    find(destroy, "vkDestroyInstance");
    find(create_device, "vkCreateDevice");
    find(properties, "vkGetPhysicalDeviceProperties");
    find(properties2, "vkGetPhysicalDeviceProperties2");
    find(features, "vkGetPhysicalDeviceFeatures");
    find(features2, "vkGetPhysicalDeviceFeatures2");
  }
};

std::mutex guard;
std::map<void*, below> instances;  // by the table that the loader puts first into a handle
std::map<void*, PFN_vkGetDeviceProcAddr> devices;

void* key_of(const void* handle) {
  void* table = nullptr;
  std::memcpy(&table, handle, sizeof table);
  return table;
}

below at(const void* handle) {
  const std::lock_guard lock(guard);
  return instances.at(key_of(handle));
}

template <class Struct>
Struct* linked(void* chain, VkStructureType type) {
  for (auto* each = static_cast<VkBaseOutStructure*>(chain); each != nullptr; each = each->pNext)
    if (each->sType == type) return reinterpret_cast<Struct*>(each);
  return nullptr;
}

void lower(VkPhysicalDeviceProperties& out) {
  const device_class& to = lowered_to();
  VkPhysicalDeviceLimits& limits = out.limits;
  limits.maxComputeSharedMemorySize = (std::min)(limits.maxComputeSharedMemorySize, to.shared_memory_bytes);
  limits.maxComputeWorkGroupInvocations = (std::min)(limits.maxComputeWorkGroupInvocations, to.workgroup_invocations);
  for (std::uint32_t& each : limits.maxComputeWorkGroupSize) each = (std::min)(each, to.workgroup_invocations);
  for (std::uint32_t& each : limits.maxComputeWorkGroupCount) each = (std::min)(each, to.workgroup_count);
  limits.maxPushConstantsSize = (std::min)(limits.maxPushConstantsSize, 128u);
  limits.maxStorageBufferRange = (std::min)(limits.maxStorageBufferRange, 1u << 27);
  out.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  std::snprintf(out.deviceName, sizeof out.deviceName, "%.*s, lowered", static_cast<int>(to.name.size()),
                to.name.data());
}

void lower(void* chain) {
  const device_class& to = lowered_to();
  if (auto* core11 =
          linked<VkPhysicalDeviceVulkan11Properties>(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
      core11 != nullptr && !to.ballot)
    core11->subgroupSupportedOperations &= ~static_cast<VkSubgroupFeatureFlags>(VK_SUBGROUP_FEATURE_BALLOT_BIT);
  if (auto* core13 =
          linked<VkPhysicalDeviceVulkan13Properties>(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES)) {
    if (!to.mixed_dot) core13->integerDotProduct4x8BitPackedMixedSignednessAccelerated = VK_FALSE;
    core13->maxComputeWorkgroupSubgroups =
        (std::min)(core13->maxComputeWorkgroupSubgroups, to.workgroup_invocations / core13->minSubgroupSize);
  }
}

void lower_features(VkPhysicalDeviceFeatures& features, void* chain) {
  const device_class& to = lowered_to();
  if (!to.int64) features.shaderInt64 = VK_FALSE;
  if (auto* core12 =
          linked<VkPhysicalDeviceVulkan12Features>(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)) {
    if (!to.int8) core12->shaderInt8 = VK_FALSE;
    if (!to.float16) core12->shaderFloat16 = VK_FALSE;
    if (!to.int64) core12->shaderBufferInt64Atomics = core12->shaderSharedInt64Atomics = VK_FALSE;
  }
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties* out) {
  at(physical).properties(physical, out);
  lower(*out);
}
VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2* out) {
  at(physical).properties2(physical, out);
  lower(out->properties);
  lower(out->pNext);
}
VKAPI_ATTR void VKAPI_CALL features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures* out) {
  at(physical).features(physical, out);
  lower_features(*out, nullptr);
}
VKAPI_ATTR void VKAPI_CALL features2(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2* out) {
  at(physical).features2(physical, out);
  lower_features(out->features, out->pNext);
}

/// What the loader passes to a layer about the next layer: `Info` is its struct in the chain that the call brings.
template <class Info>
Info* link_of(const void* chain, VkStructureType type) {
  for (auto* each = static_cast<const Info*>(chain); each != nullptr; each = static_cast<const Info*>(each->pNext))
    if (each->sType == type && each->function == VK_LAYER_LINK_INFO) return const_cast<Info*>(each);
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                                               VkInstance* out) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const auto get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result =
      reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"))(info, allocator, out);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(guard);
  instances[key_of(*out)] = below(get, *out);
  return result;
}
VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks* allocator) {
  if (instance == VK_NULL_HANDLE) return;
  const below next = at(instance);
  {
    const std::lock_guard lock(guard);
    instances.erase(key_of(instance));
  }
  next.destroy(instance, allocator);
}
VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator, VkDevice* out) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const auto get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = at(physical).create_device(physical, info, allocator, out);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(guard);
  devices[key_of(*out)] = get;
  return result;
}
VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == VK_NULL_HANDLE) return;
  PFN_vkGetDeviceProcAddr get = nullptr;
  {
    const std::lock_guard lock(guard);
    get = devices.at(key_of(device));
    devices.erase(key_of(device));
  }
  reinterpret_cast<PFN_vkDestroyDevice>(get(device, "vkDestroyDevice"))(device, allocator);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  if (std::string_view(name) == "vkGetDeviceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  if (std::string_view(name) == "vkDestroyDevice") return reinterpret_cast<PFN_vkVoidFunction>(destroy_device);
  const std::lock_guard lock(guard);
  return devices.at(key_of(device))(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const struct {
    std::string_view name;
    PFN_vkVoidFunction function;
  } own[] = {{"vkGetInstanceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(instance_function)},
             {"vkGetDeviceProcAddr", reinterpret_cast<PFN_vkVoidFunction>(device_function)},
             {"vkCreateInstance", reinterpret_cast<PFN_vkVoidFunction>(create_instance)},
             {"vkDestroyInstance", reinterpret_cast<PFN_vkVoidFunction>(destroy_instance)},
             {"vkCreateDevice", reinterpret_cast<PFN_vkVoidFunction>(create_device)},
             {"vkDestroyDevice", reinterpret_cast<PFN_vkVoidFunction>(destroy_device)},
             {"vkGetPhysicalDeviceProperties", reinterpret_cast<PFN_vkVoidFunction>(properties)},
             {"vkGetPhysicalDeviceProperties2", reinterpret_cast<PFN_vkVoidFunction>(properties2)},
             {"vkGetPhysicalDeviceProperties2KHR", reinterpret_cast<PFN_vkVoidFunction>(properties2)},
             {"vkGetPhysicalDeviceFeatures", reinterpret_cast<PFN_vkVoidFunction>(features)},
             {"vkGetPhysicalDeviceFeatures2", reinterpret_cast<PFN_vkVoidFunction>(features2)},
             {"vkGetPhysicalDeviceFeatures2KHR", reinterpret_cast<PFN_vkVoidFunction>(features2)}};
  const auto* found = std::find_if(std::begin(own), std::end(own), [&](const auto& each) { return each.name == name; });
  if (found != std::end(own)) return found->function;
  if (instance == VK_NULL_HANDLE) return nullptr;
  const below next = at(instance);
  return next.get(next.handle, name);
}

}  // namespace

extern "C" VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* out) {
  if (out == nullptr || out->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT) return VK_ERROR_INITIALIZATION_FAILED;
  out->loaderLayerInterfaceVersion = (std::min)(out->loaderLayerInterfaceVersion, 2u);
  out->pfnGetInstanceProcAddr = instance_function;
  out->pfnGetDeviceProcAddr = device_function;
  out->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
