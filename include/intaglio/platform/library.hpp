// SPDX-License-Identifier: MIT
// Shared libraries, opened while the program runs.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_headers.hpp"
#else
#include <dlfcn.h>
#endif

#include <string>

namespace intaglio::platform {

#if defined(_WIN32)
inline constexpr const char* vulkan_loader = "vulkan-1.dll";  ///< file name of Vulkan's loader
inline constexpr const char* vulkan_loader_comes_with = "it comes with the graphics driver";  ///< for messages
#elif defined(__APPLE__)
inline constexpr const char* vulkan_loader = "libvulkan.1.dylib";
inline constexpr const char* vulkan_loader_comes_with = "Homebrew: brew install vulkan-loader molten-vk";
#elif defined(__ANDROID__)
inline constexpr const char* vulkan_loader = "libvulkan.so";
inline constexpr const char* vulkan_loader_comes_with = "it is part of Android 7 and newer";
#else
inline constexpr const char* vulkan_loader = "libvulkan.so.1";
inline constexpr const char* vulkan_loader_comes_with = "Debian and Ubuntu: apt install libvulkan1 mesa-vulkan-drivers";
#endif

/// Looks up a function in a shared library, which then stays open until the process ends: threads and thread-local data
/// of the library must not outlive its code.
/// @param problem gets the system's text where the result is null
inline void (*library_function(const char* library, const char* name, std::string& problem))() {
#if defined(_WIN32)
  HMODULE opened = nullptr;
  if (::LoadLibraryA(library) == nullptr || !::GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN, library, &opened)) {
    problem = std::string(library) + " cannot be opened";
    return nullptr;
  }
  return reinterpret_cast<void (*)()>(reinterpret_cast<void*>(::GetProcAddress(opened, name)));
#else
  void* const opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (opened == nullptr) {
    const char* const reason = ::dlerror();
    problem = reason != nullptr ? reason : library;
    return nullptr;
  }
  const auto out = reinterpret_cast<void (*)()>(::dlsym(opened, name));
  ::dlclose(opened);
  return out;
#endif
}

}  // namespace intaglio::platform
