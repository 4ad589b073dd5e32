// SPDX-License-Identifier: MIT
// The one place that includes Vulkan: Vulkan-Hpp for its typed structs, and its dynamic dispatcher for the calls.
// Calls go through the C function pointers of the dispatcher, so no macro with which a host program configures
// Vulkan-Hpp (exceptions, constructors, smart handles) changes what this room does, and nothing links to libvulkan.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <vulkan/vulkan.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace intaglio::gpu {

namespace vk = VULKAN_HPP_NAMESPACE;

#if VK_HEADER_VERSION >= 301  // Vulkan-Hpp moved its dispatchers into detail with this header version
using dispatch_table = vk::detail::DispatchLoaderDynamic;
#else
using dispatch_table = vk::DispatchLoaderDynamic;
#endif

/// The C view of a Vulkan-Hpp struct, as the function pointers take it.
template <class Struct>
const typename Struct::NativeType* native(const Struct& value) noexcept {
  return reinterpret_cast<const typename Struct::NativeType*>(&value);
}
template <class Struct>
typename Struct::NativeType* native(Struct& value) noexcept {
  return reinterpret_cast<typename Struct::NativeType*>(&value);
}

}  // namespace intaglio::gpu
