// SPDX-License-Identifier: MIT
// A Vulkan instance with its functions, and the validation layer where it was requested.
#pragma once

#include <intaglio/gpu/loader.hpp>
#include <intaglio/gpu/validation.hpp>
#include <intaglio/platform/process.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

namespace intaglio::gpu {

/// Reads one of Vulkan's lists: asks for the count, then for the items, until both agree.
/// @param ask called as ask(&count, items_or_null); its VkResult is checked
template <class Item, class Ask>
std::vector<Item> enumerate(const std::string& device, const char* operation, Ask&& ask) {
  std::vector<Item> items;
  VkResult result = VK_INCOMPLETE;
  for (int attempt = 0; result == VK_INCOMPLETE && attempt < 8; ++attempt) {
    std::uint32_t count = 0;
    result = ask(&count, static_cast<Item*>(nullptr));
    if (result == VK_SUCCESS && count > 0) {
      items.assign(count, Item{});
      result = ask(&count, items.data());
    }
    items.resize(result == VK_SUCCESS ? count : 0);
  }
  if (result != VK_SUCCESS) fail(result, device, operation);
  return items;
}

/// Owns (or borrows from the host program) a VkInstance. Shared by the devices made from it.
class instance {
 public:
  /// Makes an instance of Vulkan 1.3.
  /// @error device_error: the loader is older than Vulkan 1.1, there is no driver, or validation was requested and its
  /// layer is not installed
  explicit instance(const loader& from, validation validate = validation::off) : loader_(from) {
    if (loader_.api_version() < VK_API_VERSION_1_1)
      throw device_error(
          "", "make a Vulkan instance",
          "the Vulkan loader is too old: expected 1.1 or newer, found " + version_text(loader_.api_version()));
    create(validate);
  }

  /// Borrows the instance of a host program, which keeps it alive; messages go to the host's own messenger.
  instance(const loader& from, VkInstance borrowed) : loader_(from), handle_(borrowed), owned_(false) { look_up(); }

  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;
  ~instance() {
    if (process_ == platform::process_id()) destroy();  // a forked child has none of the driver's threads
  }

  VkInstance handle() const noexcept { return handle_; }
  const dispatch_table& call() const noexcept { return call_; }
  const loader& source() const noexcept { return loader_; }
  const message_log& messages() const noexcept { return log_; }
  bool validated() const noexcept { return messenger_ != VK_NULL_HANDLE; }

  /// @error device_error: no device
  std::vector<VkPhysicalDevice> physical_devices() const {
    auto found =
        enumerate<VkPhysicalDevice>("", "list the Vulkan devices", [&](std::uint32_t* count, VkPhysicalDevice* items) {
          return call_.vkEnumeratePhysicalDevices(handle_, count, items);
        });
    if (found.empty())
      throw device_error("", "list the Vulkan devices",
                         "no device: a Vulkan driver is installed, but it found no hardware that it serves");
    return found;
  }

 private:
  static constexpr const char* layer = "VK_LAYER_KHRONOS_validation";

  void create(validation validate) {
    std::vector<const char*> layers, extensions;
    std::vector<VkValidationFeatureEnableEXT> enables;
    if (validate != validation::off) {
      require_layer();
      layers.push_back(layer);
      extensions = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
    }
    if (validate == validation::synchronization)
      enables = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    if (validate == validation::best_practices) enables = {VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
    if (validate == validation::gpu_assisted)
      enables = {VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
                 VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT};

    typed<VkInstanceCreateInfo> info;
    if (has_extension(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {  // without it the loader hides MoltenVK
      extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
      info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }
    typed<VkApplicationInfo> application;
    application.pApplicationName = "intaglio";
    application.pEngineName = "intaglio";
    application.apiVersion = VK_API_VERSION_1_3;
    typed<VkDebugUtilsMessengerCreateInfoEXT> messenger;
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = &message_log::receive;
    messenger.pUserData = &log_;
    typed<VkValidationFeaturesEXT> checks;
    checks.pNext = &messenger;
    checks.enabledValidationFeatureCount = static_cast<std::uint32_t>(enables.size());
    checks.pEnabledValidationFeatures = enables.data();

    info.pApplicationInfo = &application;
    info.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
    info.ppEnabledLayerNames = layers.data();
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    if (validate != validation::off) info.pNext = &checks;

    const auto make = loader_.global<PFN_vkCreateInstance>("vkCreateInstance");
    const VkResult result = make(&info, nullptr, &handle_);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
      fail(result, "", "make a Vulkan instance",
           "no driver: none is installed, or none of the installed ones could be opened; VK_LOADER_DEBUG=all prints "
           "why");
    if (result != VK_SUCCESS) fail(result, "", "make a Vulkan instance");
    try {
      look_up();
      if (validate == validation::off) return;
      const VkResult made = call_.vkCreateDebugUtilsMessengerEXT(handle_, &messenger, nullptr, &messenger_);
      if (made != VK_SUCCESS) fail(made, "", "register for validation messages");
    } catch (...) {
      destroy();
      throw;
    }
  }

  [[gnu::cold]] bool has_extension(const char* wanted) const {
    const auto ask =
        loader_.global<PFN_vkEnumerateInstanceExtensionProperties>("vkEnumerateInstanceExtensionProperties");
    if (ask == nullptr) return false;
    const auto found = enumerate<VkExtensionProperties>(
        "", "list the Vulkan instance's extensions",
        [&](std::uint32_t* count, VkExtensionProperties* items) { return ask(nullptr, count, items); });
    return std::any_of(found.begin(), found.end(),
                       [&](const auto& each) { return std::strcmp(each.extensionName, wanted) == 0; });
  }

  void require_layer() const {
    const auto ask = loader_.global<PFN_vkEnumerateInstanceLayerProperties>("vkEnumerateInstanceLayerProperties");
    const auto layers = enumerate<VkLayerProperties>("", "list the Vulkan layers", ask);
    for (const auto& properties : layers)
      if (std::strcmp(properties.layerName, layer) == 0) return;
    throw device_error(
        "", "turn on validation",
        std::string(layer) + " is not installed (Debian and Ubuntu: apt install vulkan-validationlayers)");
  }

  void look_up() { call_.look_up(handle_, loader_.entry()); }

  /// Whether an instance is not destroyed: the first one of the system's loader stays, so that drivers stay loaded.
  /// NVIDIA's driver (580) can be loaded 29 times in a process, and loading llvmpipe takes 27 ms.
  static bool stays(VkInstance handle) noexcept {
    static std::atomic<VkInstance> kept{VK_NULL_HANDLE};
    VkInstance none = VK_NULL_HANDLE;
    return kept.compare_exchange_strong(none, handle);
  }

  void destroy() noexcept {
    if (messenger_ != VK_NULL_HANDLE) call_.vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
    if (owned_ && handle_ != VK_NULL_HANDLE && !(loader_.is_system() && stays(handle_))) {
      const auto end = reinterpret_cast<PFN_vkDestroyInstance>(loader_.entry()(handle_, "vkDestroyInstance"));
      if (end != nullptr) end(handle_, nullptr);
    }
    messenger_ = VK_NULL_HANDLE;
    handle_ = VK_NULL_HANDLE;
  }

  loader loader_;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  dispatch_table call_{};
  message_log log_;
  bool owned_ = true;
  platform::process_number process_ = platform::process_id();
};

}  // namespace intaglio::gpu
