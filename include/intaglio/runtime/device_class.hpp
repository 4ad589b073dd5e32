// SPDX-License-Identifier: MIT
// The device class (kernels/device_class.hpp) of the device that a session runs on.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "intaglio/gpu/device.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/device_classes.hpp"

namespace intaglio::runtime {

/// The subgroup size that kernels run at: 32, for which their arithmetic is laid out, where a shader may choose it;
/// else the device's own size.
struct subgroup_choice {
  std::uint32_t size = 0;
  std::uint32_t required = 0;  ///< size that pipelines require; 0: the device has only one
};

/// Chooses 32 where pipelines may choose the subgroup size and the device has 32, else the nearest size it has.
inline subgroup_choice choose_subgroup(const gpu::device_limits& limits) {
  if (!limits.subgroup_size_selectable) return {limits.subgroup_size, 0};
  const std::uint32_t size = std::clamp(32u, limits.min_subgroup_size, limits.max_subgroup_size);
  return {size, size};
}

/// Number of workgroups of the resident dispatch that surely run at the same time on a device; 0: unknown. NVIDIA's
/// devices run one on each multiprocessor; the shader was not tried on other vendors' GPUs. llvmpipe's workgroups need
/// not run at the same time (shaders/layers_cpu.comp).
inline std::uint32_t resident_workgroups(const gpu::device& on) {
  const gpu::device_limits& limits = on.limits();
  if (on.description().type == gpu::device_type::cpu)
    return on.description().driver_name == "llvmpipe" && on.has(gpu::feature::subgroup_extended_types) ? 1 : 0;
  constexpr std::uint32_t width = kernels::layers::resident_subgroup_width;
  constexpr std::uint32_t operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if (on.description().vendor_id != 0x10DE || on.description().driver_name != "NVIDIA" ||
      choose_subgroup(limits).size != width || (limits.subgroup_operations & operations) != operations ||
      !on.has(gpu::feature::shader_integer_dot_product) || !on.has(gpu::feature::shader_int64) ||
      limits.max_workgroup_invocations < kernels::layers::resident_subgroups * width ||
      limits.max_shared_memory_bytes < kernels::layers::resident_shared_memory_bytes)
    return 0;
  return limits.multiprocessors;
}

/// Whether a device supports a matrix shape of known_matrix_shapes.
inline bool multiplies(const gpu::device& on, const kernels::matrix_shape& wanted) {
  if (!on.has(gpu::feature::cooperative_matrix)) return false;
  const auto element = [](kernels::matrix_element of) {
    switch (of) {
      case kernels::matrix_element::f16:
        return gpu::matrix_element::f16;
      case kernels::matrix_element::s8:
        return gpu::matrix_element::s8;
      case kernels::matrix_element::s32:
        return gpu::matrix_element::s32;
      default:
        return gpu::matrix_element::f32;
    }
  };
  return std::ranges::any_of(on.description().matrix_shapes, [&](const gpu::matrix_shape& s) {
    return s.m == wanted.m && s.n == wanted.n && s.k == wanted.k && s.a == element(wanted.factors) && s.b == s.a &&
           s.c == element(wanted.sums) && s.result == s.c && s.saturates == VK_FALSE &&
           s.scope == gpu::matrix_shape::subgroup_scope;
  });
}

/// The device class of a device: everything that planning needs to know.
inline kernels::device_class class_of(const gpu::device& on) {
  const gpu::device_limits& limits = on.limits();
  const subgroup_choice subgroup = choose_subgroup(limits);
  kernels::device_class out{.name = "this device",
                            .is_cpu = on.description().type == gpu::device_type::cpu,
                            .shares_memory = on.description().type == gpu::device_type::cpu ||
                                             on.description().type == gpu::device_type::integrated,
                            .subgroup_size = subgroup.size,
                            .selects_subgroup_size = subgroup.required != 0,
                            .workgroup_invocations = limits.max_workgroup_invocations,
                            .shared_memory_bytes = limits.max_shared_memory_bytes,
                            .workgroup_count = std::ranges::min(limits.max_workgroup_count),
                            .integer_dot = on.has(gpu::feature::shader_integer_dot_product),
                            .mixed_dot = limits.mixed_dot_product_accelerated,
                            .int64 = on.has(gpu::feature::shader_int64),
                            .int8 = on.has(gpu::feature::shader_int8),
                            .float16 = on.has(gpu::feature::shader_float16),
                            .ballot = (limits.subgroup_operations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0};
  for (std::size_t i = 0; i < kernels::known_matrix_shapes.size(); ++i)
    if (multiplies(on, kernels::known_matrix_shapes[i])) out.matrices[i] = kernels::known_matrix_shapes[i];
  out.resident_workgroups = resident_workgroups(on);
  return out;
}
/// The classes that a device may be used as, the most capable first.
inline std::vector<kernels::device_class> usable_classes(const gpu::device& on) {
  return plan::fallbacks(class_of(on));
}

}  // namespace intaglio::runtime
