// SPDX-License-Identifier: MIT
// A kind of device as planning sees it: facts, no choices. Named classes are in plan/device_classes.hpp;
// runtime/device_class.hpp makes a class from a device.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace intaglio::kernels {

/// Element of a cooperative matrix.
enum class matrix_element : std::uint8_t { none, f16, f32, s8, s32 };

/// One matrix product that a subgroup computes at once: A [m, k] times B [k, n] plus C [m, n].
struct matrix_shape {
  std::uint32_t m = 0, n = 0, k = 0;              ///< rows or columns of the matrices, in elements
  matrix_element factors = matrix_element::none;  ///< element type of A and B
  matrix_element sums = matrix_element::none;     ///< element type of C and of the result
  friend constexpr bool operator==(const matrix_shape&, const matrix_shape&) = default;
};
/// The shape of int8 products of chunks.
inline constexpr matrix_shape int8_wide{16, 16, 32, matrix_element::s8, matrix_element::s32};
/// The shape of int8 products of a few tokens, with 8 columns of B.
inline constexpr matrix_shape int8_narrow{16, 8, 32, matrix_element::s8, matrix_element::s32};
/// The shape of f16 products of chunks.
inline constexpr matrix_shape f16_wide{16, 16, 16, matrix_element::f16, matrix_element::f32};
/// The shape of f16 products of a few tokens, with 8 columns of B.
inline constexpr matrix_shape f16_narrow{16, 8, 16, matrix_element::f16, matrix_element::f32};
/// All shapes that modules use.
inline constexpr std::array<matrix_shape, 4> known_matrix_shapes{int8_wide, int8_narrow, f16_wide, f16_narrow};

/// Shared memory that plans rely on. Kernels with a constant `narrow` can run with half of it.
inline constexpr std::uint32_t usual_shared_memory_bytes = 32768;
/// Shared memory that modules with matrices rely on.
inline constexpr std::uint32_t matrix_shared_memory_bytes = 49152;
/// Width of subgroups that modules with matrices rely on, in invocations.
inline constexpr std::uint32_t matrix_subgroup_width = 32;

/// Features of a device that a module may demand, one bit each.
enum class demand : std::uint32_t {
  wide_loads = 1,       ///< a CPU driver with loads of 64 bits, which packs no dot products
  narrow_loads = 2,     ///< any other device
  integer_dot = 4,      ///< packed dot products
  int8_fragments = 8,   ///< int8_wide, and invocations can load fragments from memory by 64-bit addresses
  f16_matrices = 16,    ///< f16_wide
  narrow_int8 = 32,     ///< int8_wide and int8_narrow
  f16_fragments = 128,  ///< f16_narrow, and invocations can load fragments from memory by 64-bit addresses
  narrow_f16 = 64,      ///< f16_wide and f16_narrow
};
/// A set of demands.
struct demands {
  std::uint32_t bits = 0;  ///< a bit for each demand, as the enumeration numbers them
  constexpr demands() = default;
  /// The set of one demand.
  constexpr demands(demand one) : bits(static_cast<std::uint32_t>(one)) {}
  /// Whether this set has all demands of another set.
  constexpr bool has(demands all) const { return (all.bits & ~bits) == 0; }
  /// The demands that are in at least one of two sets.
  friend constexpr demands operator|(demands a, demands b) {
    a.bits |= b.bits;
    return a;
  }
  friend constexpr bool operator==(const demands&, const demands&) = default;
};
/// The set of two demands.
constexpr demands operator|(demand a, demand b) { return demands(a) | demands(b); }

/// Facts of a kind of device. Sizes are lower bounds: every such device offers at least that.
struct device_class {
  std::string_view name;                      ///< name in plans and reports
  bool is_cpu = false;                        ///< the driver computes on the host's processor
  bool shares_memory = false;                 ///< device and host share memory
  std::uint32_t subgroup_size = 32;           ///< size at which kernels run; a plan also holds for narrower subgroups
  bool selects_subgroup_size = false;         ///< pipelines require subgroup_size
  std::uint32_t workgroup_invocations = 128;  ///< invocations of a workgroup
  std::uint32_t shared_memory_bytes = 16384;  ///< shared memory of a workgroup
  std::uint32_t workgroup_count = 65535;      ///< workgroups of a dispatch, in each dimension
  bool integer_dot = false;                   ///< packed dot products of signed bytes are one instruction
  bool mixed_dot = false;                     ///< packed dot products of signed and unsigned bytes are one instruction
  bool int64 = false, int8 = false, float16 = false;  ///< shaders may compute with elements of this type
  bool ballot = false;                                ///< subgroups support ballot and broadcast
  std::array<matrix_shape, known_matrix_shapes.size()>
      matrices{};  ///< those of known_matrix_shapes that the device computes
  /// Workgroups of a resident dispatch that are sure to run at once; 0: not known. For a CPU driver 1: it runs
  /// workgroups at once or one after the other, and each finishes.
  std::uint32_t resident_workgroups = 0;

  friend constexpr bool operator==(const device_class&, const device_class&) = default;

  /// Whether the device computes a product of cooperative matrices.
  constexpr bool multiplies(const matrix_shape& wanted) const {
    for (const matrix_shape& each : matrices)
      if (each == wanted) return true;
    return false;
  }
  /// The demands that a device of this class meets.
  constexpr demands offers() const {
    const bool wide = is_cpu && int64 && ballot, fits = shared_memory_bytes >= matrix_shared_memory_bytes,
               as_wide = subgroup_size == matrix_subgroup_width;
    demands out = wide ? demand::wide_loads : demand::narrow_loads;
    if (integer_dot) out = out | demand::integer_dot;
    const bool int8_matrices = as_wide && int8 && fits && multiplies(int8_wide),
               f16_matrices = as_wide && float16 && fits && multiplies(f16_wide);
    if (int8_matrices && int64) out = out | demand::int8_fragments;
    if (f16_matrices) out = out | demand::f16_matrices;
    if (int8_matrices && multiplies(int8_narrow)) out = out | demand::narrow_int8;
    if (f16_matrices && multiplies(f16_narrow)) out = out | demand::narrow_f16;
    if (f16_matrices && multiplies(f16_narrow) && int64) out = out | demand::f16_fragments;
    return out;
  }
  /// Whether the registers of a workgroup are so few that wide workgroups would spill to memory: on GPUs whose
  /// subgroups are wider than the 32 lanes that kernels are written for.
  constexpr bool registers_are_shared() const { return !is_cpu && subgroup_size > 32; }
  /// This class without resident dispatches.
  constexpr device_class without_residency() const {
    device_class out = *this;
    out.resident_workgroups = 0;
    return out;
  }
  /// This class without cooperative matrices.
  constexpr device_class without_matrices() const {
    device_class out = *this;
    out.matrices = {};
    return out;
  }
  /// Whether a device with these facts offers everything that a class does, so that plans for the class run on it.
  constexpr bool meets(const device_class& wanted) const {
    for (const matrix_shape& each : wanted.matrices)
      if (each != matrix_shape{} && !multiplies(each)) return false;
    const auto implies = [](bool has, bool wants) { return has || !wants; };
    return is_cpu == wanted.is_cpu && implies(shares_memory, wanted.shares_memory) &&
           subgroup_size <= wanted.subgroup_size && workgroup_invocations >= wanted.workgroup_invocations &&
           shared_memory_bytes >= wanted.shared_memory_bytes && workgroup_count >= wanted.workgroup_count &&
           implies(integer_dot, wanted.integer_dot) && implies(mixed_dot, wanted.mixed_dot) &&
           implies(int64, wanted.int64) && implies(int8, wanted.int8) && implies(float16, wanted.float16) &&
           implies(ballot, wanted.ballot) && resident_workgroups >= wanted.resident_workgroups;
  }
};

}  // namespace intaglio::kernels
