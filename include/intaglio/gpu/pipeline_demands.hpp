// SPDX-License-Identifier: MIT
// Checks whether a device can run a module with given constants: its workgroup, shared memory and capabilities against
// the device's limits and enabled features. It is asked before the driver, which may crash or make a pipeline that
// cannot run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "intaglio/core/array_view.hpp"
#include "intaglio/gpu/description.hpp"
#include "intaglio/kernels/module_demands.hpp"

namespace intaglio::gpu {

/// The value of one specialization constant: 32 bits, whatever its type in the shader.
struct specialization {
  std::uint32_t id = 0;
  std::uint32_t value = 0;
};

/// The demands of a module with these constants; constants that are not named have their defaults.
inline kernels::module_demands demands_of(std::span<const std::byte> spirv,
                                          array_view<const specialization> constants) {
  return kernels::demands_of(kernels::words_in_bytes<std::byte>{spirv.data(), spirv.size()},
                             [constants](std::uint32_t id, std::uint32_t bits) {
                               for (const specialization& each : constants)
                                 if (each.id == id) return each.value;
                               return bits;
                             });
}

namespace detail {

/// A capability of SPIR-V and the feature that a device must have for it.
struct capability_entry {
  std::uint32_t capability;
  feature needs;
};
/// Numbers: SPIR-V specification 1.6, section 3.31; features: Vulkan 1.3, "SPIR-V capabilities".
inline constexpr std::array capability_table{
    capability_entry{9, feature::shader_float16},
    capability_entry{11, feature::shader_int64},
    capability_entry{12, feature::buffer_int64_atomics},
    capability_entry{22, feature::shader_int16},
    capability_entry{39, feature::shader_int8},
    capability_entry{4433, feature::storage_buffer_16bit},
    capability_entry{4448, feature::storage_buffer_8bit},
    capability_entry{5345, feature::vulkan_memory_model},
    capability_entry{5346, feature::memory_model_device_scope},
    capability_entry{5347, feature::buffer_device_address},
    capability_entry{6016, feature::shader_integer_dot_product},
    capability_entry{6017, feature::shader_integer_dot_product},
    capability_entry{6018, feature::shader_integer_dot_product},
    capability_entry{6019, feature::shader_integer_dot_product},
    capability_entry{6022, feature::cooperative_matrix},
};
/// Capabilities GroupNonUniform, ...Vote, ...Arithmetic, ...Ballot, ...Shuffle, ...ShuffleRelative, ...Clustered,
/// ...Quad, in the order of the bits of VkSubgroupFeatureFlagBits.
inline constexpr std::uint32_t first_subgroup_capability = 61, subgroup_capability_count = 8;
/// Names of the groups of subgroup operations, in the order of their capabilities.
inline constexpr std::array<std::string_view, subgroup_capability_count> subgroup_operation_names{
    "basic", "vote", "arithmetic", "ballot", "shuffle", "relative shuffle", "clustered", "quad"};

/// The sentence for a size that is 0 or over a limit.
inline std::string at_most(std::string_view what, std::uint64_t most, std::uint64_t found, std::string_view unit) {
  return std::string(what) + ": expected 1 to " + std::to_string(most) + std::string(unit) + ", found " +
         std::to_string(found);
}

/// What is wrong with the workgroup's size, or an empty text.
inline std::string unmet_workgroup(const device_limits& limits, const kernels::module_demands& of) {
  constexpr std::string_view axes[] = {"workgroup size in x", "workgroup size in y", "workgroup size in z"};
  if (of.invocations() == 0 || of.invocations() > limits.max_workgroup_invocations)
    return at_most("workgroup size", limits.max_workgroup_invocations, of.invocations(), " invocations");
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (of.workgroup[axis] > limits.max_workgroup_size[axis])
      return at_most(axes[axis], limits.max_workgroup_size[axis], of.workgroup[axis], " invocations");
  return {};
}
/// What is wrong with the workgroup's division into subgroups, or an empty text.
inline std::string unmet_subgroups(const device_limits& limits, const kernels::module_demands& of,
                                   std::uint32_t required, bool full) {
  const std::uint32_t size = required != 0 ? required : limits.subgroup_size;
  if (size == 0) return {};
  if (full && of.workgroup[0] % size != 0)
    return "workgroup size in x: expected a multiple of the subgroup size " + std::to_string(size) + ", found " +
           std::to_string(of.workgroup[0]);
  const std::uint64_t subgroups = (of.invocations() + size - 1) / size;
  if (required != 0 && subgroups > limits.max_subgroups_per_workgroup)
    return at_most("subgroups of a workgroup", limits.max_subgroups_per_workgroup, subgroups, "");
  return {};
}
/// The first capability of a module that a device lacks, or an empty text.
inline std::string unmet_capability(const device_limits& limits, const feature_set& enabled,
                                    const kernels::module_demands& of) {
  for (const capability_entry& each : capability_table)
    if (of.needs(each.capability) && !contains(enabled, each.needs))
      return std::string(name(each.needs)) + ": expected a device with this feature enabled, found one without";
  for (std::uint32_t bit = 0; bit < subgroup_capability_count; ++bit)
    if (of.needs(first_subgroup_capability + bit) && (limits.subgroup_operations >> bit & 1u) == 0)
      return "subgroup operations: expected " + std::string(subgroup_operation_names[bit]) +
             " operations in compute shaders, found a device without";
  return {};
}

}  // namespace detail

/// The first demand that a device does not meet, as a sentence that names the limit or feature; empty where it meets
/// all.
/// @param required_subgroup_size 0: the driver's choice
inline std::string unmet_demand(const device_limits& limits, const feature_set& enabled,
                                const kernels::module_demands& of, std::uint32_t required_subgroup_size,
                                bool full_subgroups) {
  if (!of.problem.empty())
    return "SPIR-V: expected declarations that can be read, found at word " + std::to_string(of.problem_word) +
           " that " + std::string(of.problem);
  std::string out = detail::unmet_workgroup(limits, of);
  if (out.empty()) out = detail::unmet_subgroups(limits, of, required_subgroup_size, full_subgroups);
  if (out.empty() && of.shared_memory_bytes > limits.max_shared_memory_bytes)
    out = "shared memory: expected at most " + std::to_string(limits.max_shared_memory_bytes) + " bytes, found " +
          std::to_string(of.shared_memory_bytes);
  return out.empty() ? detail::unmet_capability(limits, enabled, of) : out;
}

}  // namespace intaglio::gpu
