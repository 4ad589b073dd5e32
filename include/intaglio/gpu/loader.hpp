// SPDX-License-Identifier: MIT
// The source of Vulkan's functions: the system's loader, opened at run time, or an entry point that the program passes.
#pragma once

#include <intaglio/gpu/result.hpp>
#include <intaglio/platform/library.hpp>

#include <string>

namespace intaglio::gpu {

/// The Vulkan loader: one function from which all others are looked up.
class loader {
 public:
  /// Opens the loader's shared library, which stays open until the process ends.
  /// @error device_error: no Vulkan loader
  explicit loader(const char* library = platform::vulkan_loader) {
    std::string problem;
    entry_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
        platform::library_function(library, "vkGetInstanceProcAddr", problem));
    if (entry_ == nullptr && !problem.empty())
      throw device_error("", "open the Vulkan loader",
                         "no Vulkan loader: " + problem + " (" + platform::vulkan_loader_comes_with + ")");
    check(library);
    is_system_ = true;
  }

  /// Uses the entry point of a program that has opened Vulkan itself, or of a layer under test.
  /// @error device_error: the entry point is null or knows no vkCreateInstance
  explicit loader(PFN_vkGetInstanceProcAddr of_program) : entry_(of_program) {
    check("the entry point passed by the program");
  }

  PFN_vkGetInstanceProcAddr entry() const noexcept { return entry_; }
  /// Whether the loader was opened here and not passed by the program.
  bool is_system() const noexcept { return is_system_; }

  /// A function that needs no instance; null where the loader does not have it.
  template <class Function>
  Function global(const char* name) const noexcept {
    return reinterpret_cast<Function>(entry_(VK_NULL_HANDLE, name));
  }

  /// Highest Vulkan version for which this loader makes instances.
  std::uint32_t api_version() const {
    const auto enumerate = global<PFN_vkEnumerateInstanceVersion>("vkEnumerateInstanceVersion");
    if (enumerate == nullptr) return VK_API_VERSION_1_0;
    std::uint32_t version = VK_API_VERSION_1_0;
    if (const VkResult result = enumerate(&version); result != VK_SUCCESS)
      fail(result, "", "ask the Vulkan loader's version");
    return version;
  }

 private:
  void check(const char* origin) const {
    if (entry_ == nullptr || entry_(VK_NULL_HANDLE, "vkCreateInstance") == nullptr)
      throw device_error("", "open the Vulkan loader",
                         std::string("no Vulkan loader: ") + origin + " offers no vkCreateInstance");
  }

  PFN_vkGetInstanceProcAddr entry_ = nullptr;
  bool is_system_ = false;
};

/// Vulkan's packed version as text: "1.3.230".
inline std::string version_text(std::uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

}  // namespace intaglio::gpu
