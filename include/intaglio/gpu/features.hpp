// SPDX-License-Identifier: MIT
// The table of the Vulkan features that intaglio knows. The check, the features to enable, the report and the error
// texts all come from it.
#pragma once

#include <intaglio/gpu/cooperative_matrix.hpp>
#include <intaglio/gpu/device_description.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace intaglio::gpu {

/// Vulkan's structs of features, linked by pNext. A program passes head() to vkCreateDevice, or base to
/// vkGetPhysicalDeviceFeatures2. A chain has pointers to itself, so it can be neither copied nor moved.
struct feature_chain {
  typed<VkPhysicalDeviceFeatures2> base;                                               ///< Vulkan 1.0, the first struct
  typed<VkPhysicalDeviceVulkan11Features> core11;                                      ///< Vulkan 1.1
  typed<VkPhysicalDeviceVulkan12Features> core12;                                      ///< Vulkan 1.2
  typed<VkPhysicalDeviceVulkan13Features> core13;                                      ///< Vulkan 1.3
  typed<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR> pipeline_executable;  ///< linked if present
  typed<VkPhysicalDeviceRobustness2FeaturesEXT> robustness2;                           ///< linked if present
#ifdef VK_EXT_device_fault
  typed<VkPhysicalDeviceFaultFeaturesEXT> fault;  ///< linked if present
#endif
  cooperative_matrix_features cooperative_matrix;  ///< linked if present

  /// Links the structs of Vulkan 1.0 to 1.3, with all features off.
  feature_chain() {
    base.pNext = &core11;
    core11.pNext = &core12;
    core12.pNext = &core13;
  }
  feature_chain(const feature_chain&) = delete;
  feature_chain& operator=(const feature_chain&) = delete;

  /// Appends the structs of the extensions that `present` names; Vulkan forbids the others.
  template <class Present>
  void link_extensions(Present&& present) {
    void** next = &core13.pNext;
    const auto link = [&](const char* extension, auto& part) {
      if (!present(extension)) return;
      *next = &part;
      next = &part.pNext;
    };
    link("VK_KHR_pipeline_executable_properties", pipeline_executable);
    link("VK_EXT_robustness2", robustness2);
#ifdef VK_EXT_device_fault
    link("VK_EXT_device_fault", fault);
#endif
    link(cooperative_matrix_extension, cooperative_matrix);
  }

  /// The first struct, for pNext of VkDeviceCreateInfo.
  const void* head() const noexcept { return &base; }
};

/// One row of the table of features.
struct feature_entry {
  feature id;             ///< the feature that the row describes
  std::string_view name;  ///< the name of the feature, or of an extension without features, as Vulkan spells it
  const char* extension;  ///< the extension to enable; null for a feature of Vulkan 1.3
  VkBool32* (*member)(feature_chain&);  ///< finds the feature's member in a chain. Null with an extension: enabling
                                        ///< the extension is enough. Null without an extension: the Vulkan headers of
                                        ///< this build do not know the feature
  bool required;                        ///< whether the library refuses devices without the feature
};

/// All features, in the order of the enumeration.
inline constexpr std::array<feature_entry, static_cast<std::size_t>(feature::count)> feature_table{{
    {feature::buffer_device_address, "bufferDeviceAddress", nullptr,
     [](feature_chain& c) { return &c.core12.bufferDeviceAddress; }, true},
    {feature::synchronization2, "synchronization2", nullptr,
     [](feature_chain& c) { return &c.core13.synchronization2; }, true},
    {feature::timeline_semaphore, "timelineSemaphore", nullptr,
     [](feature_chain& c) { return &c.core12.timelineSemaphore; }, true},
    {feature::subgroup_size_control, "subgroupSizeControl", nullptr,
     [](feature_chain& c) { return &c.core13.subgroupSizeControl; }, true},
    {feature::compute_full_subgroups, "computeFullSubgroups", nullptr,
     [](feature_chain& c) { return &c.core13.computeFullSubgroups; }, true},
    {feature::shader_integer_dot_product, "shaderIntegerDotProduct", nullptr,
     [](feature_chain& c) { return &c.core13.shaderIntegerDotProduct; }, true},
    {feature::vulkan_memory_model, "vulkanMemoryModel", nullptr,
     [](feature_chain& c) { return &c.core12.vulkanMemoryModel; }, true},
    {feature::scalar_block_layout, "scalarBlockLayout", nullptr,
     [](feature_chain& c) { return &c.core12.scalarBlockLayout; }, true},
    {feature::maintenance4, "maintenance4", nullptr, [](feature_chain& c) { return &c.core13.maintenance4; }, true},
    {feature::storage_buffer_8bit, "storageBuffer8BitAccess", nullptr,
     [](feature_chain& c) { return &c.core12.storageBuffer8BitAccess; }, false},
    {feature::storage_buffer_16bit, "storageBuffer16BitAccess", nullptr,
     [](feature_chain& c) { return &c.core11.storageBuffer16BitAccess; }, false},
    {feature::shader_int8, "shaderInt8", nullptr, [](feature_chain& c) { return &c.core12.shaderInt8; }, false},
    {feature::shader_int16, "shaderInt16", nullptr, [](feature_chain& c) { return &c.base.features.shaderInt16; },
     false},
    {feature::shader_int64, "shaderInt64", nullptr, [](feature_chain& c) { return &c.base.features.shaderInt64; },
     false},
    {feature::shader_float16, "shaderFloat16", nullptr, [](feature_chain& c) { return &c.core12.shaderFloat16; },
     false},
    {feature::subgroup_extended_types, "shaderSubgroupExtendedTypes", nullptr,
     [](feature_chain& c) { return &c.core12.shaderSubgroupExtendedTypes; }, false},
    {feature::memory_model_device_scope, "vulkanMemoryModelDeviceScope", nullptr,
     [](feature_chain& c) { return &c.core12.vulkanMemoryModelDeviceScope; }, true},
    {feature::buffer_int64_atomics, "shaderBufferInt64Atomics", nullptr,
     [](feature_chain& c) { return &c.core12.shaderBufferInt64Atomics; }, false},
    {feature::pipeline_executable_info, "pipelineExecutableInfo", "VK_KHR_pipeline_executable_properties",
     [](feature_chain& c) { return &c.pipeline_executable.pipelineExecutableInfo; }, false},
    {feature::cooperative_matrix, "cooperativeMatrix", cooperative_matrix_extension,
     [](feature_chain& c) { return &c.cooperative_matrix.cooperativeMatrix; }, false},
#ifdef VK_EXT_device_fault
    {feature::device_fault, "deviceFault", "VK_EXT_device_fault", [](feature_chain& c) { return &c.fault.deviceFault; },
     false},
#else
    {feature::device_fault, "deviceFault", nullptr, nullptr, false},
#endif
    {feature::robust_buffer_access, "robustBufferAccess", nullptr,
     [](feature_chain& c) { return &c.base.features.robustBufferAccess; }, false},
    {feature::robust_buffer_access2, "robustBufferAccess2", "VK_EXT_robustness2",
     [](feature_chain& c) { return &c.robustness2.robustBufferAccess2; }, false},
    {feature::external_memory_host, "VK_EXT_external_memory_host", "VK_EXT_external_memory_host", nullptr, false},
    {feature::memory_budget, "VK_EXT_memory_budget", "VK_EXT_memory_budget", nullptr, false},
    {feature::calibrated_timestamps, "VK_EXT_calibrated_timestamps", "VK_EXT_calibrated_timestamps", nullptr, false},
    // A device that has this extension (MoltenVK) must be opened with it. The library uses nothing that such a device
    // leaves out.
    {feature::portability_subset, "VK_KHR_portability_subset", "VK_KHR_portability_subset", nullptr, false},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < feature_table.size(); ++i)
        if (feature_table[i].id != static_cast<feature>(i)) return false;
      return true;
    }(),
    "the table of features follows the order of the enumeration");

INTAGLIO_DEFINITION std::string_view name(feature which) { return feature_table[static_cast<std::size_t>(which)].name; }

INTAGLIO_DEFINITION feature_set required_features() {
  feature_set out;
  for (const auto& entry : feature_table) out.set(static_cast<std::size_t>(entry.id), entry.required);
  return out;
}

/// Sets the members of `chain` for `wanted`. A program that makes its own device passes chain.head() as pNext of
/// VkDeviceCreateInfo.
inline void enable(feature_chain& chain, const feature_set& wanted) {
  for (const auto& entry : feature_table)
    if (entry.member != nullptr && contains(wanted, entry.id)) *entry.member(chain) = VK_TRUE;
}

/// Names of the extensions that features belong to, each once.
inline std::vector<const char*> extensions_of(const feature_set& wanted) {
  std::vector<const char*> out;
  for (const auto& entry : feature_table)
    if (entry.extension != nullptr && contains(wanted, entry.id) &&
        std::none_of(out.begin(), out.end(), [&](std::string_view each) { return each == entry.extension; }))
      out.push_back(entry.extension);
  return out;
}

/// Links the structs of these extensions into a chain, and sets the members for `wanted`.
inline void link_and_enable(feature_chain& chain, const feature_set& wanted) {
  chain.link_extensions([extensions = extensions_of(wanted)](std::string_view name) {
    return std::any_of(extensions.begin(), extensions.end(), [&](std::string_view each) { return each == name; });
  });
  enable(chain, wanted);
}

}  // namespace intaglio::gpu
