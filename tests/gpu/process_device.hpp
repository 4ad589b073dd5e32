// SPDX-License-Identifier: MIT
// Devices that a test program opens once and keeps until it ends. Pipelines made of the same input are one pipeline
// there: a CPU driver spends more of a short session's time on them than on anything else.
#pragma once

#include <intaglio/gpu/device.hpp>
#include <intaglio/gpu/loader.hpp>

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace intaglio::testing {

/// Stands before the loader and keeps the pipelines of every device made through it until the device is destroyed.
class kept_pipelines {
 public:
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL entry(VkInstance instance, const char* name) {
    const std::string_view which = name;
    if (which == "vkGetInstanceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(&entry);
    const PFN_vkVoidFunction real = the_state().loader.entry()(instance, name);
    if (real == nullptr) return nullptr;
    if (which == "vkGetDeviceProcAddr") return stand_before(&device_entry, real);
    return replaced(which, real);
  }

 private:
  struct state {
    gpu::loader loader;
    std::mutex mutex;  // threads make pipelines side by side
    std::map<VkShaderModule, std::string> modules;
    std::map<VkDevice, std::map<std::string, VkPipeline>> pipelines;  ///< by their input
  };
  static state& the_state() {
    static state one;
    return one;
  }
  /// The replaced function, which the replacement calls.
  template <class Function>
  static inline std::atomic<Function> after{nullptr};

  template <class Value>
  static void add(std::string& key, const Value* data, std::size_t count) {
    const auto bytes = std::as_bytes(std::span(data, count));
    key += std::to_string(bytes.size()) + ':';
    key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  /// All that the library says of a pipeline.
  static std::string input_of(const VkComputePipelineCreateInfo& info) {
    const VkPipelineShaderStageCreateInfo& stage = info.stage;
    const auto* const size = static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(
        stage.pNext);  // all that the library links there
    std::string out = the_state().modules.at(stage.module);
    const std::array<std::uint32_t, 3> numbers{info.flags, stage.flags,
                                               size != nullptr ? size->requiredSubgroupSize : 0};
    add(out, numbers.data(), numbers.size());
    if (const VkSpecializationInfo* const constants = stage.pSpecializationInfo; constants != nullptr) {
      add(out, constants->pMapEntries, constants->mapEntryCount);
      add(out, static_cast<const char*>(constants->pData), constants->dataSize);
    }
    return out;
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
    if (count != 1) return VK_ERROR_UNKNOWN;  // the library makes one at a time
    state& all = the_state();
    std::string input;
    {
      const std::lock_guard lock(all.mutex);
      input = input_of(*infos);
      if (const auto found = all.pipelines[on].find(input); found != all.pipelines[on].end()) {
        *made = found->second;
        return VK_SUCCESS;
      }
    }
    const VkResult result = after<PFN_vkCreateComputePipelines>.load()(on, cache, count, infos, with, made);
    if (result != VK_SUCCESS) return result;
    const std::lock_guard lock(all.mutex);
    if (const auto [at, added] = all.pipelines[on].emplace(input, *made); !added) {  // another thread was faster
      after<PFN_vkDestroyPipeline>.load()(on, *made, with);
      *made = at->second;
    }
    return result;
  }
  static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {}
  static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice which, const VkAllocationCallbacks* with) {
    std::map<std::string, VkPipeline> its;
    {
      const std::lock_guard lock(the_state().mutex);
      its.swap(the_state().pipelines[which]);
      the_state().pipelines.erase(which);
    }
    for (const auto& [input, each] : its) after<PFN_vkDestroyPipeline>.load()(which, each, with);
    after<PFN_vkDestroyDevice>.load()(which, with);
  }

  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice on, const char* name) {
    const PFN_vkVoidFunction real = after<PFN_vkGetDeviceProcAddr>.load()(on, name);
    return real == nullptr ? nullptr : replaced(name, real);
  }
  template <class Function>
  static PFN_vkVoidFunction stand_before(Function mine, PFN_vkVoidFunction real) {
    after<Function> = reinterpret_cast<Function>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(mine);
  }
  static PFN_vkVoidFunction replaced(std::string_view which, PFN_vkVoidFunction real) {
    if (which == "vkCreateShaderModule") return stand_before<PFN_vkCreateShaderModule>(&create_module, real);
    if (which == "vkDestroyShaderModule") return stand_before<PFN_vkDestroyShaderModule>(&destroy_module, real);
    if (which == "vkCreateComputePipelines") return stand_before<PFN_vkCreateComputePipelines>(&create_pipelines, real);
    if (which == "vkDestroyPipeline") return stand_before<PFN_vkDestroyPipeline>(&destroy_pipeline, real);
    if (which == "vkDestroyDevice") return stand_before<PFN_vkDestroyDevice>(&destroy_device, real);
    return real;
  }
};

/// The devices of process_device.
inline std::deque<gpu::device>& process_devices() {
  static std::deque<gpu::device> all;
  return all;
}

/// The device that is chosen by rule, opened once in a process for each index. @param index of connections to it
inline const gpu::device& process_device(std::size_t index = 0) {
  while (process_devices().size() <= index) {
    gpu::device_options options;
    options.entry = &kept_pipelines::entry;
    CHECK(process_devices().emplace_back(options).validation_message_count() == 0);
  }
  return process_devices()[index];
}

/// Closes the devices before the validation layer, whose own end would come first, is gone.
struct device_closer : Catch::EventListenerBase {
  using Catch::EventListenerBase::EventListenerBase;
  void testRunEnded(const Catch::TestRunStats&) override { process_devices().clear(); }
};
inline const Catch::ListenerRegistrar<device_closer> closes_devices{"device_closer"};

}  // namespace intaglio::testing
