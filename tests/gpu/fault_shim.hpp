// SPDX-License-Identifier: MIT
// A layer between the library and the Vulkan loader: makes the Nth call that may fail return an error of its choice,
// loses the device, counts calls, and keeps a ledger of handles, so that leaks and double frees show. Pass
// faults::entry as the library's vkGetInstanceProcAddr. One shim a process; not for tests that run side by side.
#pragma once

#include <intaglio/gpu/instance.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace faults {

/// True on a thread while it is inside Vulkan: failing_new.hpp spares the driver's own allocations.
inline thread_local int inside_vulkan = 0;

enum class role : unsigned char { plain, create, destroy };

// Which function, what it does to handles, and what it may return beside VK_ERROR_UNKNOWN, by the Vulkan 1.3
// specification.
#define FAULTS_HOST VK_ERROR_OUT_OF_HOST_MEMORY
#define FAULTS_MEMORY VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY
#define FAULTS_FUNCTIONS(X)                                                                                  \
  X(vkEnumerateInstanceVersion, plain, FAULTS_HOST)                                                          \
  X(vkEnumerateInstanceLayerProperties, plain, FAULTS_MEMORY, VK_INCOMPLETE)                                 \
  X(vkEnumerateInstanceExtensionProperties, plain, FAULTS_MEMORY, VK_ERROR_LAYER_NOT_PRESENT, VK_INCOMPLETE) \
  X(vkCreateInstance, create, FAULTS_MEMORY, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT,     \
    VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER)                                            \
  X(vkDestroyInstance, destroy)                                                                              \
  X(vkCreateDebugUtilsMessengerEXT, create, FAULTS_HOST)                                                     \
  X(vkDestroyDebugUtilsMessengerEXT, destroy)                                                                \
  X(vkEnumeratePhysicalDevices, plain, FAULTS_MEMORY, VK_ERROR_INITIALIZATION_FAILED, VK_INCOMPLETE)         \
  X(vkEnumerateDeviceExtensionProperties, plain, FAULTS_MEMORY, VK_ERROR_LAYER_NOT_PRESENT, VK_INCOMPLETE)   \
  X(vkGetPhysicalDeviceProperties, plain)                                                                    \
  X(vkGetPhysicalDeviceProperties2, plain)                                                                   \
  X(vkGetPhysicalDeviceFeatures2, plain)                                                                     \
  X(vkGetPhysicalDeviceMemoryProperties, plain)                                                              \
  X(vkGetPhysicalDeviceMemoryProperties2, plain)                                                             \
  X(vkGetPhysicalDeviceQueueFamilyProperties, plain)                                                         \
  X(vkCreateDevice, create, FAULTS_MEMORY, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_EXTENSION_NOT_PRESENT,   \
    VK_ERROR_FEATURE_NOT_PRESENT, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_DEVICE_LOST)                           \
  X(vkDestroyDevice, destroy)                                                                                \
  X(vkGetDeviceQueue, plain)                                                                                 \
  X(vkCreateBuffer, create, FAULTS_MEMORY, VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)                          \
  X(vkDestroyBuffer, destroy)                                                                                \
  X(vkGetBufferMemoryRequirements, plain)                                                                    \
  X(vkAllocateMemory, create, FAULTS_MEMORY, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_INVALID_EXTERNAL_HANDLE,    \
    VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)                                                                 \
  X(vkFreeMemory, destroy)                                                                                   \
  X(vkBindBufferMemory, plain, FAULTS_MEMORY, VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)                       \
  X(vkMapMemory, plain, FAULTS_MEMORY, VK_ERROR_MEMORY_MAP_FAILED)                                           \
  X(vkGetBufferDeviceAddress, plain)                                                                         \
  X(vkCreateShaderModule, create, FAULTS_MEMORY, VK_ERROR_INVALID_SHADER_NV)                                 \
  X(vkDestroyShaderModule, destroy)                                                                          \
  X(vkCreatePipelineLayout, create, FAULTS_MEMORY)                                                           \
  X(vkDestroyPipelineLayout, destroy)                                                                        \
  X(vkCreatePipelineCache, create, FAULTS_MEMORY)                                                            \
  X(vkDestroyPipelineCache, destroy)                                                                         \
  X(vkGetPipelineCacheData, plain, FAULTS_MEMORY, VK_INCOMPLETE)                                             \
  X(vkCreateComputePipelines, create, FAULTS_MEMORY, VK_ERROR_INVALID_SHADER_NV)                             \
  X(vkDestroyPipeline, destroy)                                                                              \
  X(vkCreateCommandPool, create, FAULTS_MEMORY)                                                              \
  X(vkDestroyCommandPool, destroy)                                                                           \
  X(vkResetCommandPool, plain, VK_ERROR_OUT_OF_DEVICE_MEMORY)                                                \
  X(vkAllocateCommandBuffers, plain, FAULTS_MEMORY)                                                          \
  X(vkBeginCommandBuffer, plain, FAULTS_MEMORY)                                                              \
  X(vkEndCommandBuffer, plain, FAULTS_MEMORY)                                                                \
  X(vkCmdBindPipeline, plain)                                                                                \
  X(vkCmdPushConstants, plain)                                                                               \
  X(vkCmdDispatch, plain)                                                                                    \
  X(vkCmdPipelineBarrier2, plain)                                                                            \
  X(vkCmdCopyBuffer, plain)                                                                                  \
  X(vkCmdFillBuffer, plain)                                                                                  \
  X(vkCmdResetQueryPool, plain)                                                                              \
  X(vkCmdWriteTimestamp2, plain)                                                                             \
  X(vkCreateSemaphore, create, FAULTS_MEMORY)                                                                \
  X(vkDestroySemaphore, destroy)                                                                             \
  X(vkQueueSubmit, plain, FAULTS_MEMORY, VK_ERROR_DEVICE_LOST)                                               \
  X(vkQueueWaitIdle, plain, FAULTS_MEMORY, VK_ERROR_DEVICE_LOST)                                             \
  X(vkWaitSemaphores, plain, FAULTS_MEMORY, VK_ERROR_DEVICE_LOST, VK_TIMEOUT)                                \
  X(vkGetSemaphoreCounterValue, plain, FAULTS_MEMORY, VK_ERROR_DEVICE_LOST)                                  \
  X(vkCreateQueryPool, create, FAULTS_MEMORY)                                                                \
  X(vkDestroyQueryPool, destroy)                                                                             \
  X(vkGetQueryPoolResults, plain, FAULTS_MEMORY, VK_ERROR_DEVICE_LOST, VK_NOT_READY)

/// A function of Vulkan that the shim intercepts.
struct function {
  const char* name;
  role does;
  std::vector<VkResult> codes;
};

enum class id : unsigned char {
#define FAULTS_ROW(name, does, ...) name,
  FAULTS_FUNCTIONS(FAULTS_ROW)
#undef FAULTS_ROW
      count
};

inline const std::vector<function>& functions() {
  static const std::vector<function> all{
#define FAULTS_ROW(name, does, ...) function{#name, role::does, {__VA_ARGS__}},
      FAULTS_FUNCTIONS(FAULTS_ROW)
#undef FAULTS_ROW
  };
  return all;
}

/// One call that could have failed, as the record of a faultless run lists them.
struct fallible_call {
  id which;
  std::size_t nth;  ///< among the calls of this function, from 0
};

/// What the shim shall do and what it saw. Guarded by its mutex where threads make pipelines.
class shim {
 public:
  /// Forgets all calls and orders; the ledger of handles stays.
  void reset() {
    const std::lock_guard lock(mutex_);
    forget();
  }
  /// From now, until the next reset(), what is submitted never begins.
  void hang() { hangs_ = true; }
  bool hangs() const { return hangs_; }
  /// From now the `nth` call of `which` returns `code`.
  void arm(id which, std::size_t nth, VkResult code) {
    const std::lock_guard lock(mutex_);  // one lock: a call of another thread between the two would be the nth
    forget();
    armed_ = true;
    target_ = {which, nth};
    code_ = code;
  }
  /// From now, until the next reset() or arm(), each call of `which` returns `code` too.
  void arm_all(id which, VkResult code) {
    const std::lock_guard lock(mutex_);
    always_ = {which, 0};
    always_code_ = code;
  }
  bool injected() const { return injected_; }
  std::size_t calls(id which) const { return calls_[static_cast<std::size_t>(which)]; }
  std::size_t calls() const {
    std::size_t out = 0;
    for (const std::size_t each : calls_) out += each;
    return out;
  }
  /// All calls that could have failed since reset(), in their order.
  std::vector<fallible_call> record() const { return record_; }
  /// Handles made and not destroyed, as "vkCreateBuffer x 2".
  std::vector<std::string> live() const {
    std::vector<std::string> out;
    for (const auto& [maker, handles] : ledger_)
      if (!handles.empty()) out.push_back(maker + " x " + std::to_string(handles.size()));
    return out;
  }
  /// Empties the ledger: of a device whose work did not end in time nothing is ever destroyed.
  void forget_handles() {
    const std::lock_guard lock(mutex_);
    ledger_.clear();
  }
  /// Destroy calls for a handle that was not alive.
  std::size_t wrong_destroys() const { return wrong_destroys_; }

  /// Called before each function. @return true, and the code, where it shall fail
  bool before(id which, VkResult& code) {
    const std::lock_guard lock(mutex_);
    const function& what = functions()[static_cast<std::size_t>(which)];
    const std::size_t nth = calls_[static_cast<std::size_t>(which)]++;
    if (!what.codes.empty()) record_.push_back({which, nth});
    if (lost_ && can_lose(what)) {  // once lost, always lost
      code = VK_ERROR_DEVICE_LOST;
      return true;
    }
    if (always_code_ != VK_SUCCESS && which == always_.which) {
      code = always_code_;
      return true;
    }
    if (!armed_ || which != target_.which || nth != target_.nth) return false;
    injected_ = true;
    code = code_;
    lost_ =
        code == VK_ERROR_DEVICE_LOST && which != id::vkCreateDevice;  // which has no device yet that could stay lost
    return true;
  }
  void created(id which, std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    if (handle != 0) ledger_[functions()[static_cast<std::size_t>(which)].name].insert(handle);
  }
  void destroyed(id which, std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    if (handle == 0) return;
    std::string maker = functions()[static_cast<std::size_t>(which)].name;
    if (maker == "vkFreeMemory") maker = "vkAllocateMemory";
    else if (maker == "vkDestroyPipeline") maker = "vkCreateComputePipelines";
    else maker.replace(2, 7, "Create");
    auto& handles = ledger_[maker];
    const auto found = handles.find(handle);
    if (found == handles.end()) ++wrong_destroys_;
    else handles.erase(found);
  }

 private:
  void forget() {
    calls_.fill(0);
    record_.clear();
    armed_ = false;
    always_code_ = VK_SUCCESS;
    injected_ = false;
    lost_ = false;
    hangs_ = false;
    wrong_destroys_ = 0;
  }

  static bool can_lose(const function& what) {
    for (const VkResult each : what.codes)
      if (each == VK_ERROR_DEVICE_LOST && std::strcmp(what.name, "vkCreateDevice") != 0) return true;
    return false;
  }

  std::mutex mutex_;
  std::array<std::size_t, static_cast<std::size_t>(id::count)> calls_{};
  std::vector<fallible_call> record_;
  std::map<std::string, std::multiset<std::uint64_t>> ledger_;  // lavapipe may give the same handle to equal things
  fallible_call target_{}, always_{};
  VkResult code_ = VK_SUCCESS, always_code_ = VK_SUCCESS;
  bool armed_ = false, lost_ = false;
  std::atomic<bool> hangs_{false}, injected_{false};
  std::size_t wrong_destroys_ = 0;
};

inline shim& the_shim() {
  static shim one;
  return one;
}

inline PFN_vkGetInstanceProcAddr real_entry() {
  static const PFN_vkGetInstanceProcAddr entry = [] {
    const intaglio::gpu::loader system;
    try {
      const intaglio::gpu::instance first(
          system);  // keeps the drivers loaded, which those made by the shim would unload
    } catch (const intaglio::device_error&) {}
    return system.entry();
  }();
  return entry;
}

/// Changes what devices say of their limits, where it is set: see lowered_limits.
inline std::function<void(VkPhysicalDeviceLimits&)> lowering;
/// The VkDriverId that devices say they are of, where it is not zero.
inline VkDriverId reported_driver{};
/// The type that devices say they are of, where it is not VK_PHYSICAL_DEVICE_TYPE_OTHER.
inline VkPhysicalDeviceType reported_type{};

/// Bytes that devices say are free in each of their heaps, where it is set: their size, for drivers without
/// VK_EXT_memory_budget.
inline std::optional<std::uint64_t> reported_free;
/// Whether devices say that they have one more family of queues, which only copy. Its queue is that of the first
/// family.
inline bool with_copy_family = false;

/// While it lives, devices say that they have at most these limits. 0: what the driver says. The driver keeps its own.
struct lowered_limits {
  std::uint32_t shared_memory_bytes = 0, workgroup_invocations = 0;
  lowered_limits(std::uint32_t shared_bytes, std::uint32_t invocations)
      : shared_memory_bytes(shared_bytes), workgroup_invocations(invocations) {
    lowering = [this](VkPhysicalDeviceLimits& limits) {
      const auto lower = [](std::uint32_t& limit, std::uint32_t to) {
        if (to != 0) limit = (std::min)(limit, to);
      };
      lower(limits.maxComputeSharedMemorySize, shared_memory_bytes);
      lower(limits.maxComputeWorkGroupInvocations, workgroup_invocations);
      for (std::uint32_t& size : limits.maxComputeWorkGroupSize) lower(size, workgroup_invocations);
    };
  }
  lowered_limits(const lowered_limits&) = delete;
  lowered_limits& operator=(const lowered_limits&) = delete;
  ~lowered_limits() { lowering = nullptr; }
};

/// The driver's answers, changed as the variables above say.
inline void change(VkPhysicalDeviceMemoryProperties2& memory) {
  if (!reported_free) return;
  for (VkMemoryHeap& each : memory.memoryProperties.memoryHeaps) each.size = *reported_free;
  for (auto* each = static_cast<VkBaseOutStructure*>(memory.pNext); each; each = each->pNext) {
    if (each->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
    auto& budget = *reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(each);
    for (std::size_t i = 0; i < std::size(budget.heapBudget); ++i)
      budget.heapBudget[i] = budget.heapUsage[i] + *reported_free;
  }
}
/// @param room number of families for which there is room
inline void add_copy_family(std::uint32_t room, std::uint32_t& count, VkQueueFamilyProperties* families) {
  if (families != nullptr && count == room) return;  // no room for one more
  if (families != nullptr) families[count] = {VK_QUEUE_TRANSFER_BIT, 1, 0, {1, 1, 1}};
  ++count;
}

/// Where the shim's own functions lead; another layer may stand there (gpu/kept_device.hpp).
inline std::atomic<PFN_vkGetInstanceProcAddr> beneath{nullptr};

/// The device and the instance that were made last.
inline std::atomic<VkDevice> last_device{VK_NULL_HANDLE};
inline std::atomic<VkInstance> last_instance{VK_NULL_HANDLE};

/// Waits for a device's work, whatever the shim says of it.
inline void drain(VkDevice which) {
  const auto wait = reinterpret_cast<PFN_vkDeviceWaitIdle>(real_entry()(last_instance.load(), "vkDeviceWaitIdle"));
  if (which != VK_NULL_HANDLE && wait != nullptr) wait(which);
}

template <class Value>
std::uint64_t number(Value handle) {
  if constexpr (std::is_pointer_v<Value>) return reinterpret_cast<std::uintptr_t>(handle);
  else return static_cast<std::uint64_t>(handle);
}

struct inside {
  inside() { ++inside_vulkan; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() { --inside_vulkan; }
};

template <id Which, role Does, class Function>
struct wrapped;

template <id Which, role Does, class Result, class... Arguments>
struct wrapped<Which, Does, Result(VKAPI_PTR*)(Arguments...)> {
  static inline std::atomic<Result(VKAPI_PTR*)(Arguments...)> real{nullptr};

  /// Asks the driver, which has no family of queues that only copy.
  static Result ask(Arguments... arguments) {
    if constexpr (Which == id::vkCreateDevice || Which == id::vkCreateCommandPool || Which == id::vkCreateBuffer) {
      const auto given = std::make_tuple(arguments...);
      auto info = *std::get<1>(given);
      if constexpr (Which == id::vkCreateDevice)
        info.queueCreateInfoCount = with_copy_family ? 1 : info.queueCreateInfoCount;
      else if constexpr (Which == id::vkCreateCommandPool)
        info.queueFamilyIndex = with_copy_family ? 0 : info.queueFamilyIndex;
      else info.sharingMode = with_copy_family ? VK_SHARING_MODE_EXCLUSIVE : info.sharingMode;
      return real.load()(std::get<0>(given), &info, std::get<2>(given), std::get<3>(given));
    } else {
      return real.load()(arguments...);
    }
  }
  static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
    const inside guard;
    const auto given = std::make_tuple(arguments...);
    if constexpr (Does == role::destroy) {
      // vkDestroyInstance and vkDestroyDevice destroy their first argument, all others their second
      if constexpr (sizeof...(Arguments) == 2) the_shim().destroyed(Which, number(std::get<0>(given)));
      else the_shim().destroyed(Which, number(std::get<1>(given)));
      if constexpr (Which == id::vkDestroyDevice)
        if (last_device == std::get<0>(given)) last_device = VK_NULL_HANDLE;
    }
    VkResult code = VK_SUCCESS;
    const bool fails = the_shim().before(Which, code);
    [[maybe_unused]] const bool timed_out =
        code == VK_TIMEOUT;  // said of work that does end: of other work nothing may be destroyed
    if constexpr (std::is_same_v<Result, VkResult>) {
      if constexpr (Which == id::vkWaitSemaphores)
        if (timed_out) drain(std::get<0>(given));
      if constexpr (Which == id::vkQueueWaitIdle)
        if (code == VK_ERROR_DEVICE_LOST)
          real.load()(arguments...);  // only when this one returns is nothing of a lost device in use
      if (fails) return code;
      if constexpr (Which == id::vkQueueSubmit)
        if (the_shim().hangs()) return VK_SUCCESS;
      const VkResult result = ask(arguments...);
      if constexpr (Does == role::create) {
        const auto made = std::get<sizeof...(Arguments) - 1>(given);
        if (result == VK_SUCCESS) {
          the_shim().created(Which, number(*made));
          if constexpr (Which == id::vkCreateDevice) last_device = *made;
          if constexpr (Which == id::vkCreateInstance) last_instance = *made;
        }
      }
      return result;
    } else if constexpr (Which == id::vkGetPhysicalDeviceMemoryProperties2) {
      real.load()(arguments...);
      change(*std::get<1>(given));
    } else if constexpr (Which == id::vkGetPhysicalDeviceQueueFamilyProperties) {
      const std::uint32_t room = *std::get<1>(given);
      real.load()(arguments...);
      if (with_copy_family) add_copy_family(room, *std::get<1>(given), std::get<2>(given));
    } else if constexpr (Which == id::vkGetDeviceQueue) {
      real.load()(std::get<0>(given), with_copy_family ? 0 : std::get<1>(given), std::get<2>(given),
                  std::get<3>(given));
    } else if constexpr (Which == id::vkGetPhysicalDeviceProperties) {
      real.load()(arguments...);
      if (reported_type != VkPhysicalDeviceType{}) std::get<1>(given)->deviceType = reported_type;
    } else if constexpr (Which == id::vkGetPhysicalDeviceProperties2) {
      real.load()(arguments...);
      if (lowering) lowering(std::get<1>(given)->properties.limits);
      if (reported_driver != VkDriverId{})
        for (auto* each = static_cast<VkBaseOutStructure*>(std::get<1>(given)->pNext); each; each = each->pNext)
          if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES)
            reinterpret_cast<VkPhysicalDeviceVulkan12Properties*>(each)->driverID = reported_driver;
    } else {
      return real.load()(arguments...);
    }
  }
};

template <id Which, role Does, class Function>
PFN_vkVoidFunction stand_before(PFN_vkVoidFunction real) {
  wrapped<Which, Does, Function>::real = reinterpret_cast<Function>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(&wrapped<Which, Does, Function>::call);
}

inline PFN_vkVoidFunction stand_before(const char* name, PFN_vkVoidFunction real) {
#define FAULTS_ROW(function, does, ...) \
  if (std::strcmp(name, #function) == 0) return stand_before<id::function, role::does, PFN_##function>(real);
  FAULTS_FUNCTIONS(FAULTS_ROW)
#undef FAULTS_ROW
  return real;
}

#ifdef VK_EXT_device_fault
/// A device that is lost here is not for the driver, which may not be asked why.
inline VKAPI_ATTR VkResult VKAPI_CALL planted_fault(VkDevice, VkDeviceFaultCountsEXT* counts,
                                                    VkDeviceFaultInfoEXT* info) {
  counts->addressInfoCount = counts->vendorInfoCount = 0;
  counts->vendorBinarySize = 0;
  if (info != nullptr) std::strcpy(info->description, "planted");
  return VK_SUCCESS;
}
#endif

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice, const char* name);

/// The library's way into Vulkan. All functions come from the instance, as the loader's own doors serve every device.
inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL entry(VkInstance instance, const char* name) {
  const inside guard;
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&entry);
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) return reinterpret_cast<PFN_vkVoidFunction>(&device_entry);
  const PFN_vkGetInstanceProcAddr from = beneath.load();
  const PFN_vkVoidFunction real = (from != nullptr ? from : real_entry())(instance, name);
#ifdef VK_EXT_device_fault
  if (real != nullptr && std::strcmp(name, "vkGetDeviceFaultInfoEXT") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(&planted_fault);
#endif
  return real == nullptr ? nullptr : stand_before(name, real);
}

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice, const char* name) {
  return entry(last_instance.load(), name);
}

}  // namespace faults
