// SPDX-License-Identifier: MIT
// A Vulkan layer that takes the device away, refuses memory or takes long when a file in the folder INTAGLIO_FAULTS
// says so, and, preloaded, a wall clock that jumps by an hour at every look. Built by vulkan_layer.py.
// - lost: the next submission ends with VK_ERROR_DEVICE_LOST, as do all later calls of that device; the file is taken
//   away.
// - full: no memory of the device while the file is there.
// - crash: the process ends where it makes a pipeline, while the file is there.
// - allocation: its content N: the N-th allocation from the start is refused, the file is taken away then.
// - slow: its content N: each pipeline and each submission takes N ms longer.
#include <sys/syscall.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace {

std::mutex mutex;
std::map<void*, PFN_vkGetInstanceProcAddr> instances;  // by dispatch table, which handles of an instance share
struct device_calls {
  PFN_vkGetDeviceProcAddr next;
  VkDevice device;
  bool lost;
};
std::map<void*, device_calls> devices;
std::atomic<unsigned> allocations{0};

void* table_of(const void* handle) { return *static_cast<void* const*>(handle); }
std::string fault(const char* name) {
  const char* const folder = std::getenv("INTAGLIO_FAULTS");
  return std::string(folder == nullptr ? "/nonexistent" : folder) + '/' + name;
}
bool is_there(const char* name) { return ::access(fault(name).c_str(), F_OK) == 0; }

/// The number in a fault's file; 0 without the file.
unsigned number_of(const char* name) {
  unsigned out = 0;
  if (std::FILE* const file = std::fopen(fault(name).c_str(), "r")) {
    if (std::fscanf(file, "%u", &out) != 1) out = 0;
    std::fclose(file);
  }
  return out;
}
void take_long() { std::this_thread::sleep_for(std::chrono::milliseconds(number_of("slow"))); }

template <class Create, class Info>
Info* link_of(const Create* info, VkStructureType type) {
  auto* at = const_cast<Info*>(static_cast<const Info*>(info->pNext));
  while (at != nullptr && !(at->sType == type && at->function == VK_LAYER_LINK_INFO))
    at = const_cast<Info*>(static_cast<const Info*>(at->pNext));
  return at;
}

template <class Call>
Call next_of(const void* handle, const char* name) {
  const std::lock_guard lock(mutex);
  const device_calls& of = devices.at(table_of(handle));
  return reinterpret_cast<Call>(of.next(of.device, name));
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* how,
                                               VkInstance* out) {
  auto* const link =
      link_of<VkInstanceCreateInfo, VkLayerInstanceCreateInfo>(info, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = reinterpret_cast<PFN_vkCreateInstance>(next(nullptr, "vkCreateInstance"))(info, how, out);
  const std::lock_guard lock(mutex);
  if (result == VK_SUCCESS) instances[table_of(*out)] = next;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice on, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* how, VkDevice* out) {
  auto* const link =
      link_of<VkDeviceCreateInfo, VkLayerDeviceCreateInfo>(info, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr calls = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult result = reinterpret_cast<PFN_vkCreateDevice>(next(nullptr, "vkCreateDevice"))(on, info, how, out);
  const std::lock_guard lock(mutex);
  if (result == VK_SUCCESS) devices[table_of(*out)] = {calls, *out, false};
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice on, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* how,
                                        VkDeviceMemory* out) {
  const unsigned number = ++allocations;
  if (is_there("full")) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (number_of("allocation") == number) {
    ::unlink(fault("allocation").c_str());
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  return next_of<PFN_vkAllocateMemory>(on, "vkAllocateMemory")(on, info, how, out);
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue on, std::uint32_t count, const VkSubmitInfo* info, VkFence fence) {
  take_long();
  {
    const std::lock_guard lock(mutex);
    bool& lost = devices.at(table_of(on)).lost;
    if (::unlink(fault("lost").c_str()) == 0) lost = true;
    if (lost) return VK_ERROR_DEVICE_LOST;
  }
  return next_of<PFN_vkQueueSubmit>(on, "vkQueueSubmit")(on, count, info, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL make_pipelines(VkDevice on, VkPipelineCache cache, std::uint32_t count,
                                              const VkComputePipelineCreateInfo* infos,
                                              const VkAllocationCallbacks* how, VkPipeline* out) {
  if (is_there("crash")) std::abort();
  take_long();
  return next_of<PFN_vkCreateComputePipelines>(on, "vkCreateComputePipelines")(on, cache, count, infos, how, out);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_call(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(device_call);
  if (std::strcmp(name, "vkAllocateMemory") == 0) return reinterpret_cast<PFN_vkVoidFunction>(allocate);
  if (std::strcmp(name, "vkCreateComputePipelines") == 0) return reinterpret_cast<PFN_vkVoidFunction>(make_pipelines);
  if (std::strcmp(name, "vkQueueSubmit") == 0) return reinterpret_cast<PFN_vkVoidFunction>(submit);
  return next_of<PFN_vkVoidFunction>(device, name);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) PFN_vkVoidFunction faults_device_call(VkDevice device, const char* name) {
  return device_call(device, name);
}

__attribute__((visibility("default"))) PFN_vkVoidFunction faults_instance_call(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(faults_instance_call);
  if (std::strcmp(name, "vkCreateInstance") == 0) return reinterpret_cast<PFN_vkVoidFunction>(create_instance);
  if (std::strcmp(name, "vkCreateDevice") == 0) return reinterpret_cast<PFN_vkVoidFunction>(create_device);
  for (const char* const of_device :
       {"vkGetDeviceProcAddr", "vkAllocateMemory", "vkCreateComputePipelines", "vkQueueSubmit"})
    if (std::strcmp(name, of_device) == 0) return device_call(nullptr, name);
  if (instance == nullptr) return nullptr;
  PFN_vkGetInstanceProcAddr next = nullptr;
  {
    const std::lock_guard lock(mutex);
    next = instances.at(table_of(instance));
  }
  return next(instance, name);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t which, timespec* out) noexcept {
  const long result = ::syscall(SYS_clock_gettime, which, out);
  static std::atomic<unsigned> looks{0};
  if (which == CLOCK_REALTIME && std::getenv("INTAGLIO_CLOCK_JUMPS") != nullptr)
    out->tv_sec += looks++ * 2654435761u >> 31 == 0 ? 3600 : -3600;
  return static_cast<int>(result);
}
}
