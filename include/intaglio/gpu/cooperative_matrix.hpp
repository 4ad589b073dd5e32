// SPDX-License-Identifier: MIT
// VK_KHR_cooperative_matrix: products of small matrices that a subgroup computes together. The extension's structs are
// declared here as in the specification, since the headers of many systems are older.
#pragma once

#include <intaglio/gpu/device_description.hpp>
#include <intaglio/gpu/instance.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::gpu {

/// Name of the extension for cooperative matrices.
inline constexpr const char* cooperative_matrix_extension = "VK_KHR_cooperative_matrix";

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct cooperative_matrix_features {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

/// Whether the device has the int8 shapes that modules use: ternary_chunk_fragments 16 columns at a time,
/// matmul_batch_matrix 8.
inline bool multiplies_int8(const std::vector<matrix_shape>& shapes, std::uint32_t n = 16) {
  return std::any_of(shapes.begin(), shapes.end(), [n](const matrix_shape& s) {
    return s.m == 16 && s.n == n && s.k == 32 && s.a == matrix_element::s8 && s.b == matrix_element::s8 &&
           s.c == matrix_element::s32 && s.result == matrix_element::s32 && s.saturates == VK_FALSE &&
           s.scope == matrix_shape::subgroup_scope;
  });
}

/// Whether the device has the f16 shapes that modules use: matmul_chunk_matrix 16 columns at a time, matmul_chunk_batch
/// 8.
inline bool multiplies_f16(const std::vector<matrix_shape>& shapes, std::uint32_t columns = 16) {
  return std::any_of(shapes.begin(), shapes.end(), [columns](const matrix_shape& s) {
    return s.m == 16 && s.n == columns && s.k == 16 && s.a == matrix_element::f16 && s.b == matrix_element::f16 &&
           s.c == matrix_element::f32 && s.result == matrix_element::f32 && s.saturates == VK_FALSE &&
           s.scope == matrix_shape::subgroup_scope;
  });
}

/// The matrix shapes of a device that has the extension.
/// @error device_error, out_of_memory: the driver's call failed
inline std::vector<matrix_shape> list_matrix_shapes(const instance& from, VkPhysicalDevice physical,
                                                    const std::string& device) {
  using ask_type = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, matrix_shape*);
  const auto ask = reinterpret_cast<ask_type>(
      from.source().entry()(from.handle(), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (ask == nullptr) return {};
  return enumerate<matrix_shape>(
      device, "list the shapes of cooperative matrices",
      [&](std::uint32_t* count, matrix_shape* items) { return ask(physical, count, items); });
}

}  // namespace intaglio::gpu
