// SPDX-License-Identifier: MIT
// Vulkan's validation layer: which checks are requested, and where its messages go.
#pragma once

#include <intaglio/core/error.hpp>

#include <vulkan/vulkan_core.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::gpu {

/// What VK_LAYER_KHRONOS_validation checks beside the valid use of each call.
enum class validation : std::uint8_t {
  off,              ///< no layer
  synchronization,  ///< missing barriers
  gpu_assisted,     ///< instrumented shaders: device addresses out of bounds
  best_practices,   ///< warnings about legal but unwise use
};

/// The checks that the environment requests: INTAGLIO_VALIDATE=1 (or sync), gpu, best; unset, empty or 0: off.
/// @error argument_error: any other value
inline validation validation_from_environment() {
  const char* const text = std::getenv("INTAGLIO_VALIDATE");
  const std::string_view wish = text == nullptr ? "" : text;
  if (wish.empty() || wish == "0") return validation::off;
  if (wish == "1" || wish == "sync") return validation::synchronization;
  if (wish == "gpu") return validation::gpu_assisted;
  if (wish == "best") return validation::best_practices;
  throw argument_error("INTAGLIO_VALIDATE", "0, 1, sync, gpu or best", "'" + printable(wish) + "'");
}

/// Keeps the messages of the layer, and prints them to stderr as they come. Any thread may use it.
class message_log {
 public:
  void add(const char* text) noexcept {
    std::fprintf(stderr, "intaglio: validation: %s\n", text);
    const std::lock_guard lock(mutex_);
    ++count_;
    try {
      if (messages_.size() < 256) messages_.emplace_back(text);
    } catch (...) {  // the count still has it
    }
  }
  /// Number of messages since the start, also of those beyond the 256 that are kept.
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

  /// The callback of VK_EXT_debug_utils; its user data is the log.
  static VKAPI_ATTR VkBool32 VKAPI_CALL receive(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* log) {
    const std::string_view id = data->pMessageIdName != nullptr ? data->pMessageIdName : "";
    const std::string_view text = data->pMessage != nullptr ? data->pMessage : "(no text)";
    for (const auto& each : declined)
      if (id.find(each.id) != std::string_view::npos && text.find(each.text) != std::string_view::npos) return VK_FALSE;
    static_cast<message_log*>(log)->add(text.data());
    return VK_FALSE;
  }

 private:
  struct message {
    std::string_view id, text;  ///< texts that must occur in id and text of the message
  };
  /// Messages that are not reported. They are advice of best_practices that intaglio declines on purpose; no message of
  /// another check has such an id. Others are messages of layer 1.4 that are no mistake of intaglio: queries by
  /// drivers, and changes that the layer makes for GPU-assisted checks.
  static constexpr message declined[] = {
      {"BestPractices-vkCreateInstance-specialuse-extension", ""},  // the extensions that the layer itself needs
      {"BestPractices-vkBeginCommandBuffer-simultaneous-use", ""},  // a recording runs several times at once by design
      {"BestPractices-vkAllocateMemory-small-allocation", ""},      // a model has few buffers, each with its own memory
      {"BestPractices-vkBindMemory-small-dedicated-allocation", ""},
      {"WARNING-vkGetDeviceProcAddr-device",
       "vkGetPhysicalDevice"},  // some drivers (NVIDIA 580) and some Vulkan-Hpp ask a device for these
      {"VALIDATION-SETTINGS", "Both GPU Assisted Validation and Normal Core Check"},  // both are asked for
      {"WARNING-GPU-Assisted-Validation", "Internal Warning: Forcing "},
      {"WARNING-GPU-Assisted-Validation", "Internal Warning: Setting Vk"},
      {"WARNING-GPU-Assisted-Validation", "[Disabling gpuav_validate_ray_query]"},
  };

  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
  std::size_t count_ = 0;
};

}  // namespace intaglio::gpu
