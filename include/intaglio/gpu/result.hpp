// SPDX-License-Identifier: MIT
// Conversion of VkResult and of exceptions of the standard library to the exceptions of intaglio.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/gpu/dispatch.hpp>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace intaglio::gpu {

/// The name of a VkResult that the calls of gpu/ may return, as Vulkan spells it: "VK_ERROR_DEVICE_LOST".
inline std::string result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "VK_SUCCESS";
    case VK_NOT_READY:
      return "VK_NOT_READY";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_INCOMPLETE:
      return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_UNKNOWN:
      return "VK_ERROR_UNKNOWN";
    case VK_ERROR_INVALID_EXTERNAL_HANDLE:
      return "VK_ERROR_INVALID_EXTERNAL_HANDLE";
    case VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS:
      return "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS";
    case VK_ERROR_INVALID_SHADER_NV:
      return "VK_ERROR_INVALID_SHADER_NV";
    default:
      return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

/// A size as text for people: "626.3 MiB".
inline std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

/// Throws the exception for a failed call.
/// @error out_of_memory for host and device memory, device_lost for a lost device, device_error for all other results
[[noreturn]] inline void fail(VkResult result, const std::string& device, const std::string& operation,
                              const std::string& detail = {}) {
  const std::string what = result_name(result) + (detail.empty() ? "" : " (" + detail + ")");
  const int code = static_cast<int>(result);
  if (result == VK_ERROR_DEVICE_LOST) throw device_lost(device, operation, what, code);
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
    throw out_of_memory(device, operation, what, code);
  throw device_error(device, operation, what, code);
}

/// An error that is made at program start, because building a message would need the memory whose lack it reports. Its
/// texts are short enough to copy without an allocation.
inline const out_of_memory host_memory_exhausted{"", "host memory", "exhausted",
                                                 static_cast<int>(VK_ERROR_OUT_OF_HOST_MEMORY)};

/// Runs `body` and converts exceptions of the standard library to exceptions of intaglio. Exceptions of intaglio and of
/// the caller pass unchanged.
template <class Body>
decltype(auto) translated(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) { throw out_of_memory(host_memory_exhausted); }
}

}  // namespace intaglio::gpu
