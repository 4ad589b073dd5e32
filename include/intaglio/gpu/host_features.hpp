// SPDX-License-Identifier: MIT
// The features and extensions that a host program enables on a device that it lends to the library (gpu::host_device).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "intaglio/gpu/description.hpp"

namespace intaglio::gpu {

/// What a host program enables beside its own features.
struct host_features {
  feature_set enabled;                  ///< for gpu::enable and host_device::enabled
  std::vector<const char*> extensions;  ///< names for VkDeviceCreateInfo, each once

  bool has_extension(std::string_view name) const { return std::ranges::count(extensions, name) != 0; }
  /// Writes the features into a chain, in which the host may have set its own.
  void enable_in(feature_chain& chain) const {
    chain.link_extensions([this](std::string_view name) { return has_extension(name); });
    enable(chain, enabled);
  }
};

/// All features of a device that the library needs or that make models faster. Bounds checks of buffers
/// (robustBufferAccess) are left out, as on the library's own devices.
/// @param of made for Vulkan 1.3
/// @error device_error: the driver reports an error
inline host_features features_for(PFN_vkGetInstanceProcAddr entry, VkInstance of, VkPhysicalDevice physical) {
  const feature_set offered = describe(instance(loader(entry), of), physical, 0).features;
  host_features out{required_features(), {}};
  for (const feature_entry& each : feature_table) {
    if (each.name.starts_with("robustBufferAccess") || !contains(offered, each.id)) continue;
    out.enabled.set(static_cast<std::size_t>(each.id));
    if (each.extension != nullptr && !out.has_extension(each.extension)) out.extensions.push_back(each.extension);
  }
  return out;
}

}  // namespace intaglio::gpu
