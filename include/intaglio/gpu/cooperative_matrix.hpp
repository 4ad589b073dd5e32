// SPDX-License-Identifier: MIT
// VK_KHR_cooperative_matrix: products of small matrices that a subgroup does at once. Its structs are declared here as
// the specification has them, since the headers of many systems are older than it.
#pragma once

#include <intaglio/gpu/instance.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::gpu {

inline constexpr const char* cooperative_matrix_extension = "VK_KHR_cooperative_matrix";

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct cooperative_matrix_features {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

/// VkComponentTypeKHR.
enum class matrix_element : std::uint32_t { f16, f32, f64, s8, s16, s32, s64, u8, u16, u32, u64 };

constexpr std::string_view name(matrix_element type) {
  constexpr std::array<std::string_view, 11> names{"f16", "f32", "f64", "s8",  "s16", "s32",
                                                   "s64", "u8",  "u16", "u32", "u64"};
  return static_cast<std::size_t>(type) < names.size() ? names[static_cast<std::size_t>(type)] : "other";
}

/// VkCooperativeMatrixPropertiesKHR: A [m, k] times B [k, n] plus C [m, n].
struct matrix_shape {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  std::uint32_t m = 0, n = 0, k = 0;
  matrix_element a{}, b{}, c{}, result{};
  VkBool32 saturates = VK_FALSE;
  std::uint32_t scope = 0;  ///< VkScopeKHR
  static constexpr std::uint32_t subgroup_scope = 3;

  /// "16x16x32 s8 s8 s32"
  std::string text() const {
    std::string out = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    for (const auto each : {a, b, result}) out.append(" ").append(name(each));
    return out;
  }
};

/// True for what modules multiply by: ternary_chunk_matrix 16 columns of int8 at a time, matmul_few_matrix 8.
inline bool multiplies_int8(const std::vector<matrix_shape>& shapes, std::uint32_t n = 16) {
  return std::any_of(shapes.begin(), shapes.end(), [n](const matrix_shape& s) {
    return s.m == 16 && s.n == n && s.k == 32 && s.a == matrix_element::s8 && s.b == matrix_element::s8 &&
           s.c == matrix_element::s32 && s.result == matrix_element::s32 && s.saturates == VK_FALSE &&
           s.scope == matrix_shape::subgroup_scope;
  });
}

/// True for what modules multiply by: matmul_chunk_matrix 16 columns of f16 at a time, matmul_chunk_few 8.
inline bool multiplies_halves(const std::vector<matrix_shape>& shapes, std::uint32_t columns = 16) {
  return std::any_of(shapes.begin(), shapes.end(), [columns](const matrix_shape& s) {
    return s.m == 16 && s.n == columns && s.k == 16 && s.a == matrix_element::f16 && s.b == matrix_element::f16 &&
           s.c == matrix_element::f32 && s.result == matrix_element::f32 && s.saturates == VK_FALSE &&
           s.scope == matrix_shape::subgroup_scope;
  });
}

/// What a device that has the extension multiplies.
/// @error device_error, out_of_memory: the driver's call failed
inline std::vector<matrix_shape> list_matrix_shapes(const instance& from, VkPhysicalDevice physical,
                                                    const std::string& device) {
  using ask_type = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, matrix_shape*);
  const auto ask = reinterpret_cast<ask_type>(
      from.call().vkGetInstanceProcAddr(from.handle(), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (ask == nullptr) return {};
  return enumerate<matrix_shape>(
      device, "list the shapes of cooperative matrices",
      [&](std::uint32_t* count, matrix_shape* items) { return ask(physical, count, items); });
}

}  // namespace intaglio::gpu
