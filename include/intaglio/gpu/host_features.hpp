// SPDX-License-Identifier: MIT
// The features and extensions that a host program enables on a device that it lends to the library (gpu::host_device).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <vector>

#include "intaglio/gpu/description.hpp"

namespace intaglio::gpu {

/// What a host program enables beside its own features.
struct host_features {
  feature_set enabled;                  ///< for gpu::enable and host_device::enabled
  std::vector<const char*> extensions;  ///< names for VkDeviceCreateInfo, each once

  /// Writes the features into a chain, in which the host may have set its own.
  void enable_in(feature_chain& chain) const { link_and_enable(chain, enabled); }
};

/// All features of a device that the library needs or that make models faster. Bounds checks of buffers
/// (robustBufferAccess) are left out, as on the library's own devices.
/// @param of made for Vulkan 1.3
/// @error device_error: the driver reports an error
inline host_features features_for(PFN_vkGetInstanceProcAddr entry, VkInstance of, VkPhysicalDevice physical) {
  feature_set wanted = describe(instance(loader(entry), of), physical, 0).features | required_features();
  for (const feature checks_bounds : {feature::robust_buffer_access, feature::robust_buffer_access2})
    wanted.reset(static_cast<std::size_t>(checks_bounds));
  return {wanted, extensions_of(wanted)};
}

}  // namespace intaglio::gpu
