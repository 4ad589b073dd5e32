// SPDX-License-Identifier: MIT
// Beneath the shim, a device that stays: of the lives of a session that end in a fault each would make a device and
// compile the same pipelines anew, which is nearly all that they cost. The library's calls and the ledger of handles
// are the same; the driver sees the device made and destroyed once.
#pragma once

#include "gpu/fault_shim.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace faults {

/// While it lives, devices that ask for the same extensions get one device by turns (features are not compared: a test
/// asks for one set), and pipelines made of the same get one pipeline. At its end the driver destroys both, where a
/// layer tells of what was left of them. Of several the first begins and the last ends; no device of the shim may live
/// then.
class kept_device {
 public:
  kept_device() {
    if (the_state().users++ == 0) beneath = &entry;
  }
  kept_device(const kept_device&) = delete;
  kept_device& operator=(const kept_device&) = delete;
  ~kept_device() {
    state& all = the_state();
    if (--all.users != 0) return;
    beneath = nullptr;
    const auto real = [&]<class Function>(Function, const char* name) {
      return reinterpret_cast<Function>(real_entry()(all.instance, name));
    };
    for (const auto& [key, each] : all.pipelines)
      real(PFN_vkDestroyPipeline{}, "vkDestroyPipeline")(all.device, each, nullptr);
    if (all.device != VK_NULL_HANDLE) real(PFN_vkDestroyDevice{}, "vkDestroyDevice")(all.device, nullptr);
    if (all.instance != VK_NULL_HANDLE) real(PFN_vkDestroyInstance{}, "vkDestroyInstance")(all.instance, nullptr);
    all.device = VK_NULL_HANDLE, all.instance = VK_NULL_HANDLE;
    all.asked.clear(), all.modules.clear(), all.pipelines.clear();
  }

 private:
  struct state {
    int users = 0;
    std::mutex mutex;                      // pipelines are made on several threads
    VkInstance instance = VK_NULL_HANDLE;  ///< of the device
    VkDevice device = VK_NULL_HANDLE;
    std::string asked;  ///< what the device was made of
    bool in_use = false;
    std::map<VkShaderModule, std::string> modules;
    std::map<std::string, VkPipeline> pipelines;
  };
  static state& the_state() {
    static state one;
    return one;
  }
  /// The intercepted function, which the replacement calls.
  template <class Function>
  static inline std::atomic<Function> after{nullptr};

  template <class Value>
  static void add(std::string& key, const Value* data, std::size_t count) {
    const auto bytes = std::as_bytes(std::span(data, count));
    key += std::to_string(bytes.size()) + ':';
    key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice of, const VkDeviceCreateInfo* info,
                                                      const VkAllocationCallbacks* with, VkDevice* made) {
    std::string key;
    for (std::uint32_t i = 0; i < info->enabledExtensionCount; ++i)
      key += std::string(info->ppEnabledExtensionNames[i]) + ' ';
    state& all = the_state();
    if (all.device != VK_NULL_HANDLE && !all.in_use && key == all.asked) {
      *made = all.device;
      all.in_use = true;
      return VK_SUCCESS;
    }
    const VkResult result = after<PFN_vkCreateDevice>.load()(of, info, with, made);
    if (result == VK_SUCCESS && all.device == VK_NULL_HANDLE)
      all.instance = last_instance, all.device = *made, all.asked = key, all.in_use = true;
    return result;
  }
  static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice which, const VkAllocationCallbacks* with) {
    if (which == the_state().device) the_state().in_use = false;
    else after<PFN_vkDestroyDevice>.load()(which, with);
  }
  static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance which, const VkAllocationCallbacks* with) {
    if (which != the_state().instance) after<PFN_vkDestroyInstance>.load()(which, with);
  }
  static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice on, const VkShaderModuleCreateInfo* info,
                                                      const VkAllocationCallbacks* with, VkShaderModule* made) {
    const VkResult result = after<PFN_vkCreateShaderModule>.load()(on, info, with, made);
    if (result != VK_SUCCESS) return result;
    const std::lock_guard lock(the_state().mutex);
    the_state().modules[*made].assign(reinterpret_cast<const char*>(info->pCode), info->codeSize);
    return result;
  }
  static VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice on, VkShaderModule which,
                                                   const VkAllocationCallbacks* with) {
    {
      const std::lock_guard lock(the_state().mutex);
      the_state().modules.erase(which);
    }
    after<PFN_vkDestroyShaderModule>.load()(on, which, with);
  }
  static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice on, VkPipelineCache cache, std::uint32_t count,
                                                         const VkComputePipelineCreateInfo* infos,
                                                         const VkAllocationCallbacks* with, VkPipeline* made) {
    state& all = the_state();
    const VkPipelineShaderStageCreateInfo& stage = infos->stage;
    const auto* const size = static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(
        stage.pNext);  // all that the library links there
    std::string key;
    {
      const std::lock_guard lock(all.mutex);
      key = all.modules[stage.module];
    }
    const std::array<std::uint32_t, 3> numbers{infos->flags, stage.flags,
                                               size != nullptr ? size->requiredSubgroupSize : 0};
    add(key, numbers.data(), numbers.size());
    if (const VkSpecializationInfo* const constants = stage.pSpecializationInfo; constants != nullptr) {
      add(key, constants->pMapEntries, constants->mapEntryCount);
      add(key, static_cast<const char*>(constants->pData), constants->dataSize);
    }
    if (on == all.device && count == 1) {
      const std::lock_guard lock(all.mutex);
      if (const auto found = all.pipelines.find(key); found != all.pipelines.end()) {
        *made = found->second;
        return VK_SUCCESS;
      }
    }
    const VkResult result = after<PFN_vkCreateComputePipelines>.load()(on, cache, count, infos, with, made);
    if (result != VK_SUCCESS || on != all.device || count != 1) return result;
    const std::lock_guard lock(all.mutex);
    if (const auto [at, added] = all.pipelines.emplace(key, *made); !added) {  // another thread was faster
      after<PFN_vkDestroyPipeline>.load()(on, *made, with);
      *made = at->second;
    }
    return result;
  }
  static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice on, VkPipeline which, const VkAllocationCallbacks* with) {
    if (on == the_state().device) return;
    after<PFN_vkDestroyPipeline>.load()(on, which, with);
  }

  template <class Function>
  static PFN_vkVoidFunction stand_before(Function mine, PFN_vkVoidFunction real) {
    after<Function> = reinterpret_cast<Function>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(mine);
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL entry(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction real = real_entry()(instance, name);
    if (real == nullptr) return real;
    const std::string_view which = name;
    if (which == "vkCreateDevice") return stand_before<PFN_vkCreateDevice>(&create_device, real);
    if (which == "vkDestroyDevice") return stand_before<PFN_vkDestroyDevice>(&destroy_device, real);
    if (which == "vkDestroyInstance") return stand_before<PFN_vkDestroyInstance>(&destroy_instance, real);
    if (which == "vkCreateShaderModule") return stand_before<PFN_vkCreateShaderModule>(&create_module, real);
    if (which == "vkDestroyShaderModule") return stand_before<PFN_vkDestroyShaderModule>(&destroy_module, real);
    if (which == "vkCreateComputePipelines") return stand_before<PFN_vkCreateComputePipelines>(&create_pipelines, real);
    if (which == "vkDestroyPipeline") return stand_before<PFN_vkDestroyPipeline>(&destroy_pipeline, real);
    return real;
  }
};

}  // namespace faults
