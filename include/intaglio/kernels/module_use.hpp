// SPDX-License-Identifier: MIT
// The data of the functions of kernels/spirv/demands.hpp: the specialization constants of a module, and its demands
// with them. Sizes: std430, in the order of declaration (kernels/module_demands.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace intaglio::kernels {

/// One use of a module: its constants are the input, its demands the output.
struct module_use {
  std::span<const std::uint32_t> constants;  ///< by constant_id
  std::uint64_t absent = 0;                  ///< a bit for each constant that is not given
  std::array<std::uint32_t, 3> workgroup{};  ///< invocations in x, y and z
  std::uint64_t shared_memory_bytes = 0;
  bool defined = true;  ///< false if a demand depends on an absent constant, or on an operation without a result

  constexpr std::uint64_t invocations() const {
    return std::uint64_t{workgroup[0]} * workgroup[1] * workgroup[2];  // y and z are 1 in every module
  }
  constexpr std::uint32_t constant(std::uint32_t id) {
    if (id < constants.size() && (absent >> id & 1u) == 0) return constants[id];
    defined = false;
    return 1;
  }
  constexpr std::uint32_t quotient(std::uint32_t a, std::uint32_t b) { return has_result(b != 0) ? a / b : 0; }
  constexpr std::uint32_t remainder(std::uint32_t a, std::uint32_t b) { return has_result(b != 0) ? a % b : 0; }
  constexpr std::uint32_t shifted_right(std::uint32_t a, std::uint32_t b) { return has_result(b < 32) ? a >> b : 0; }
  constexpr std::uint32_t shifted_left(std::uint32_t a, std::uint32_t b) { return has_result(b < 32) ? a << b : 0; }
  /// Adds a variable in shared memory.
  constexpr void add(std::uint64_t bytes, std::uint32_t alignment) {
    shared_memory_bytes = (shared_memory_bytes + (alignment - 1)) / alignment * alignment + bytes;
  }

 private:
  constexpr bool has_result(bool has) {
    defined = defined && has;
    return has;
  }
};

}  // namespace intaglio::kernels
