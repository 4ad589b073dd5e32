// SPDX-License-Identifier: MIT
// The description of a device as plain values: identity, driver, limits, memory, features, and the requirements of
// intaglio that it lacks. It uses only C handles of Vulkan.
#pragma once

#include "intaglio/core/definition.hpp"

#include <vulkan/vulkan_core.h>

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::gpu {

/// A feature or extension of a device. required_features() says which ones every device must have.
enum class feature : std::uint8_t {
  buffer_device_address,
  synchronization2,
  timeline_semaphore,
  subgroup_size_control,
  compute_full_subgroups,
  shader_integer_dot_product,
  vulkan_memory_model,
  scalar_block_layout,
  maintenance4,
  storage_buffer_8bit,
  storage_buffer_16bit,
  shader_int8,
  shader_int16,
  shader_int64,
  shader_float16,
  subgroup_extended_types,
  memory_model_device_scope,
  buffer_int64_atomics,
  pipeline_executable_info,
  cooperative_matrix,
  device_fault,
  robust_buffer_access,
  robust_buffer_access2,
  external_memory_host,
  memory_budget,
  calibrated_timestamps,
  portability_subset,
  count
};

/// A set of features of a device.
using feature_set = std::bitset<static_cast<std::size_t>(feature::count)>;

/// The name of a feature, as Vulkan spells it.
std::string_view name(feature which);
/// Whether a set has a feature.
inline bool contains(const feature_set& set, feature which) { return set.test(static_cast<std::size_t>(which)); }
/// The features that every device must have.
feature_set required_features();

/// Type of the elements of a cooperative matrix, with the values of VkComponentTypeKHR.
enum class matrix_element : std::uint32_t { f16, f32, f64, s8, s16, s32, s64, u8, u16, u32, u64 };

/// The short name of an element type: "f16"; "other" for a type that Vulkan added later.
constexpr std::string_view name(matrix_element type) {
  constexpr std::array<std::string_view, 11> names{"f16", "f32", "f64", "s8",  "s16", "s32",
                                                   "s64", "u8",  "u16", "u32", "u64"};
  return static_cast<std::size_t>(type) < names.size() ? names[static_cast<std::size_t>(type)] : "other";
}

/// One product of cooperative matrices that a device computes: A [m, k] times B [k, n] plus C [m, n].
/// The members have the layout of VkCooperativeMatrixPropertiesKHR.
struct matrix_shape {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);  ///< the structure's type in Vulkan
  void* pNext = nullptr;                                             ///< always null
  std::uint32_t m = 0, n = 0, k = 0;                                 ///< rows or columns, in elements
  matrix_element a{}, b{}, c{}, result{};                            ///< element types of the four matrices
  VkBool32 saturates = VK_FALSE;                      ///< whether integer sums are clamped instead of wrapped
  std::uint32_t scope = 0;                            ///< the invocations that share the matrices, a VkScopeKHR
  static constexpr std::uint32_t subgroup_scope = 3;  ///< VK_SCOPE_SUBGROUP_KHR, the only scope that kernels use

  /// The shape as reports print it: "16x16x32 s8 s8 s32" for m, n, k and the types of A, B and the result.
  std::string text() const {
    std::string out = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    for (const auto each : {a, b, result}) out.append(" ").append(name(each));
    return out;
  }
};

/// Kind of a device, as Vulkan classifies it (VkPhysicalDeviceType).
enum class device_type : std::uint8_t { discrete, integrated, virtual_gpu, cpu, other };

/// The name of a type of device: "discrete GPU".
constexpr std::string_view name(device_type type) {
  constexpr std::array<std::string_view, 5> names{"discrete GPU", "integrated GPU", "virtual GPU", "CPU", "other"};
  return names[static_cast<std::size_t>(type)];
}

/// One heap of memory.
struct memory_heap {
  std::uint64_t size_bytes = 0;  ///< size of the whole heap, also of what other programs use
  bool device_local = false;     ///< whether the heap is the device's own memory, not the host's
};

/// The limits that plans and kernels depend on, as the driver reports them. 0: not reported.
struct device_limits {
  std::uint32_t max_push_constant_bytes = 0;                                      ///< bytes of push constants
  std::uint32_t max_shared_memory_bytes = 0;                                      ///< shared memory of a workgroup
  std::uint32_t max_workgroup_invocations = 0;                                    ///< invocations of a workgroup
  std::array<std::uint32_t, 3> max_workgroup_size{};                              ///< invocations in x, y and z
  std::array<std::uint32_t, 3> max_workgroup_count{};                             ///< workgroups in x, y and z
  std::uint32_t subgroup_size = 0, min_subgroup_size = 0, max_subgroup_size = 0;  ///< invocations of a subgroup
  std::uint32_t max_subgroups_per_workgroup = 0;  ///< subgroups of a workgroup whose subgroup size is chosen
  bool subgroup_size_selectable = false;          ///< whether a compute pipeline may choose its subgroup size
  std::uint32_t subgroup_operations = 0;          ///< subgroup operations of compute shaders, VkSubgroupFeatureFlags
  bool int8_dot_product_accelerated = false;      ///< accelerated for products of signed bytes
  bool mixed_dot_product_accelerated = false;     ///< accelerated for products of signed and unsigned bytes
  std::uint32_t multiprocessors = 0;              ///< number of multiprocessors that run workgroups at once
                                                  ///< (VK_NV_shader_sm_builtins); 0: unknown
  std::uint64_t max_allocation_bytes = 0;         ///< size of one allocation of memory
  std::uint64_t max_buffer_bytes = 0;             ///< size of one buffer
  std::uint64_t max_storage_range_bytes = 0;      ///< range of a storage buffer that a descriptor can bind
  std::uint64_t host_pointer_alignment =
      0;                          ///< alignment of imported host memory in bytes (VK_EXT_external_memory_host); 0: none
  float timestamp_period_ns = 0;  ///< nanoseconds of one step of a timestamp
  std::uint32_t timestamp_bits = 0;  ///< valid bits of timestamps in the chosen queue family; 0: no timestamps
};

/// The description of a device before it is opened.
struct device_description {
  std::uint32_t index = 0;                               ///< position in the loader's order
  std::string name;                                      ///< the device's name, without control characters
  device_type type = device_type::other;                 ///< kind of the device
  std::uint32_t vendor_id = 0, device_id = 0;            ///< PCI's numbers of vendor and device
  std::array<std::uint8_t, VK_UUID_SIZE> uuid{};         ///< the device's identity, which a restart does not change
  std::array<std::uint8_t, VK_UUID_SIZE> driver_uuid{};  ///< identity of the driver's build
  std::string driver_name, driver_info;                  ///< the driver's name and version as text
  std::uint32_t driver_id = 0;                           ///< the driver's number, a VkDriverId
  std::uint32_t driver_version = 0;                      ///< the driver's version, packed as its vendor defines
  std::uint32_t api_version = 0;                         ///< the highest version of Vulkan that the device supports
  device_limits limits;                                  ///< limits of the device
  std::vector<memory_heap> heaps;                        ///< all heaps, in Vulkan's order

  feature_set features;                       ///< supported features, not necessarily enabled
  std::vector<matrix_shape> matrix_shapes;    ///< of cooperative matrices
  std::optional<std::uint32_t> queue_family;  ///< compute, preferably without graphics
  std::optional<std::uint32_t> copy_family;   ///< copies only: its queues copy while the others compute
  std::vector<std::string> missing;           ///< requirements of intaglio that the device lacks; empty: usable

  /// The name by which errors call the device: "llvmpipe (LLVM 15.0.6, 256 bits) [llvmpipe Mesa 22.3.6]".
  std::string label() const { return name + (driver_name.empty() ? "" : " [" + driver_name + " " + driver_info + "]"); }
};

/// A UUID as text: "6c6c766d-7069-7065-5555-494400000000".
inline std::string uuid_text(std::span<const std::uint8_t> uuid) {
  std::string out;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += "0123456789abcdef"[uuid[i] >> 4];
    out += "0123456789abcdef"[uuid[i] & 15];
  }
  return out;
}

}  // namespace intaglio::gpu
