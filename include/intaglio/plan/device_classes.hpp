// SPDX-License-Identifier: MIT
// Named classes of devices as data (kernels/device_class.hpp), and the reduced classes to which a device may fall back.
// A plan is proven for some classes when it is compiled, and for the actual device when a session begins.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <string>
#include <vector>

#include "intaglio/kernels/device_class.hpp"

namespace intaglio::plan {

using kernels::demand, kernels::device_class;

/// Classes of devices, named after a driver or a series of GPUs. Limits are the values that drivers report. Sources:
/// docs/gpu.md, and vulkan.gpuinfo.org for devices on which the project has not run.
namespace classes {
/// Mesa's CPU driver, vectors of up to 512 bits.
inline constexpr device_class llvmpipe{.name = "llvmpipe",
                                       .is_cpu = true,
                                       .shares_memory = true,
                                       .subgroup_size = 16,
                                       .workgroup_invocations = 1024,
                                       .shared_memory_bytes = 32768,
                                       .integer_dot = true,
                                       .int64 = true,
                                       .int8 = true,
                                       .ballot = true,
                                       .resident_workgroups = 1};
/// Any CPU driver.
inline constexpr device_class cpu{.name = "cpu",
                                  .is_cpu = true,
                                  .shares_memory = true,
                                  .subgroup_size = 16,
                                  .workgroup_invocations = 1024,
                                  .shared_memory_bytes = 32768};
/// Any GPU that can run a plan.
inline constexpr device_class baseline{
    .name = "baseline", .subgroup_size = 64, .workgroup_invocations = 1024, .shared_memory_bytes = 32768};
/// GeForce RTX 20 and later, and data-centre cards of the same generations.
inline constexpr device_class nvidia{.name = "nvidia",
                                     .subgroup_size = 32,
                                     .selects_subgroup_size = true,
                                     .workgroup_invocations = 1024,
                                     .shared_memory_bytes = 49152,
                                     .workgroup_count = 65535,
                                     .integer_dot = true,
                                     .mixed_dot = true,
                                     .int64 = true,
                                     .int8 = true,
                                     .float16 = true,
                                     .ballot = true,
                                     .matrices = kernels::known_matrix_shapes};
/// H100 SXM and H200. A resident dispatch has one workgroup for each of the 132 multiprocessors.
inline constexpr device_class h100 = [] {
  device_class out = nvidia;
  out.name = "h100";
  out.resident_workgroups = 132;
  return out;
}();
/// Radeon RX 7000 and later, whose matrix instructions have 16 columns (RADV).
inline constexpr device_class amd_wave32{.name = "amd_wave32",
                                         .subgroup_size = 32,
                                         .selects_subgroup_size = true,
                                         .workgroup_invocations = 1024,
                                         .shared_memory_bytes = 65536,
                                         .integer_dot = true,
                                         .mixed_dot = true,
                                         .int64 = true,
                                         .int8 = true,
                                         .float16 = true,
                                         .ballot = true,
                                         .matrices = {kernels::f16_wide}};
/// Arc and later integrated GPUs (ANV), whose cooperative matrices have other shapes.
inline constexpr device_class xe{.name = "xe",
                                 .subgroup_size = 32,
                                 .selects_subgroup_size = true,
                                 .workgroup_invocations = 1024,
                                 .shared_memory_bytes = 65536,
                                 .integer_dot = true,
                                 .mixed_dot = true,
                                 .int64 = true,
                                 .int8 = true,
                                 .float16 = true,
                                 .ballot = true};
/// M1 and later through MoltenVK.
inline constexpr device_class apple{.name = "apple",
                                    .shares_memory = true,
                                    .subgroup_size = 32,
                                    .workgroup_invocations = 1024,
                                    .shared_memory_bytes = 32768,
                                    .integer_dot = true,
                                    .int64 = true,
                                    .int8 = true,
                                    .float16 = true,
                                    .ballot = true};
/// Adreno 7xx, which offers subgroups of 64 and of 128; plans choose 64.
inline constexpr device_class adreno{.name = "adreno",
                                     .shares_memory = true,
                                     .subgroup_size = 64,
                                     .selects_subgroup_size = true,
                                     .workgroup_invocations = 1024,
                                     .shared_memory_bytes = 32768,
                                     .integer_dot = true,
                                     .int64 = true,
                                     .int8 = true,
                                     .float16 = true,
                                     .ballot = true};

/// Radeons before RDNA (GCN 3 to 5, Ryzen 2000 to 5000; RADV).
inline constexpr device_class gcn{.name = "gcn",
                                  .subgroup_size = 64,
                                  .selects_subgroup_size = true,
                                  .workgroup_invocations = 1024,
                                  .shared_memory_bytes = 65536,
                                  .integer_dot = true,
                                  .int64 = true,
                                  .int8 = true,
                                  .float16 = true,
                                  .ballot = true};
/// Radeon RX 5000 and 6000, Steam Deck (RADV).
inline constexpr device_class rdna = [] {
  device_class out = amd_wave32;
  out.name = "rdna";
  out.mixed_dot = false;
  out.matrices = {};
  return out;
}();
/// Jetson Orin: the class nvidia with memory shared by CPU and GPU.
inline constexpr device_class jetson = [] {
  device_class out = nvidia;
  out.name = "jetson";
  out.shares_memory = true;
  return out;
}();
/// Mali, Valhall and later. The limits are the lowest of them: Mali-G57's 512 invocations.
inline constexpr device_class mali{.name = "mali",
                                   .shares_memory = true,
                                   .subgroup_size = 16,
                                   .workgroup_invocations = 512,
                                   .shared_memory_bytes = 32768,
                                   .integer_dot = true,
                                   .int64 = true,
                                   .int8 = true,
                                   .float16 = true,
                                   .ballot = true};
/// VideoCore 7 of the Raspberry Pi 5 (V3DV).
inline constexpr device_class v3d{.name = "v3d",
                                  .shares_memory = true,
                                  .subgroup_size = 16,
                                  .workgroup_invocations = 256,
                                  .shared_memory_bytes = 16384,
                                  .integer_dot = true,
                                  .ballot = true};
/// The minimum that Vulkan guarantees, with the widest subgroups of a GPU.
inline constexpr device_class least{.name = "least", .subgroup_size = 64};

/// Classes of CPU drivers for which plans are made in advance, the most capable first.
inline constexpr const device_class* cpus[] = {&llvmpipe, &cpu};
/// Classes of GPUs for which plans are made in advance, the most capable first.
inline constexpr const device_class* gpus[] = {&h100, &nvidia, &amd_wave32, &xe, &apple, &adreno, &baseline};
/// Classes of GPUs without a plan made in advance; the plan that each gets is tested (docs/devices.md).
inline constexpr const device_class* other_gpus[] = {&gcn, &rdna, &jetson, &mali, &v3d, &least};
}  // namespace classes

/// Rank of a class by the features that plans use. The plan of the highest rank that a device supports is taken.
constexpr std::uint32_t strength(const device_class& of) {
  const kernels::demands offers = of.offers();
  return (of.resident_workgroups != 0 ? 8u : 0u) + (offers.has(demand::f16_matrices) ? 4u : 0u) +
         (offers.has(demand::integer_dot) ? 2u : 0u) + (offers.has(demand::wide_loads) ? 1u : 0u);
}

/// A device's class, then reduced classes of it. Each omits more features that may be faulty on the device, if its
/// kernels differ from the reference.
[[gnu::cold]] inline std::vector<device_class> fallbacks(const device_class& of) {
  std::vector<device_class> out;
  device_class narrow = of;
  if (of.offers().has(demand::wide_loads)) {
    if (of.resident_workgroups != 0) out.push_back(of);
    out.push_back(of.without_residency());
    narrow.int64 = false;
  }
  if (of.is_cpu) narrow.resident_workgroups = 0;
  const kernels::demands offers = narrow.offers();
  const bool any_matrices = offers.has(demand::int8_fragments) || offers.has(demand::f16_matrices);
  for (const bool matrices : {true, false}) {
    if (!narrow.integer_dot || (matrices && !any_matrices)) continue;
    const device_class each = matrices ? narrow : narrow.without_matrices();
    if (each.resident_workgroups != 0) out.push_back(each);
    out.push_back(each.without_residency());
  }
  device_class least = narrow.without_residency().without_matrices();
  least.integer_dot = false;
  out.push_back(least);
  return out;
}

/// Names the features of a device that a plan uses. The names distinguish the classes of fallbacks().
inline std::string uses(const device_class& of) {
  const kernels::demands offers = of.offers();
  std::string out = offers.has(demand::wide_loads)    ? "wide_loads"
                    : offers.has(demand::integer_dot) ? "integer_dot"
                                                      : "portable";
  if (of.resident_workgroups != 0) out += "+resident";
  if (offers.has(demand::int8_fragments)) out += "+matrix";
  if (offers.has(demand::f16_matrices)) out += "+half_matrix";
  if (offers.has(demand::narrow_int8)) out += "+batch_matrix";
  if (offers.has(demand::narrow_f16)) out += "+narrow_f16";
  if (offers.has(demand::f16_fragments)) out += "+half_fragments";
  return out;
}

}  // namespace intaglio::plan
