// SPDX-License-Identifier: MIT
// An element-wise function as plain data: the steps that shader::value (shader/value.hpp) recorded.
// reference/activation.hpp computes them on the CPU, kernels/splice.hpp writes them into a SPIR-V module, both in this
// order.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace intaglio::shader {
/// What a step of an expression computes.
enum class operation : std::uint8_t {
  gate,
  up,  ///< the parameters gate and up
  constant,
  negate,
  absolute,
  exp,  ///< exp as kernels/arithmetic.hpp has it
  add,
  subtract,
  multiply,
  divide,  ///< add, subtract, multiply and divide; each result is rounded
  maximum,
  minimum,  ///< minimum and maximum as a > b ? a : b, a < b ? a : b: the second operand where one is not a number
  less,
  less_equal,
  equal,
  both,
  either,
  opposite,  ///< truth values
  select,    ///< of[0] ? of[1] : of[2]
};

/// One operation. `of` has the indices of its operands among the earlier steps.
struct step {
  operation what = operation::gate;
  std::array<std::uint8_t, 3> of{};
  std::uint32_t bits = 0;  ///< bits of a constant
  friend constexpr bool operator==(const step& a, const step& b) {
    return a.what == b.what && a.bits == b.bits && a.of[0] == b.of[0] && a.of[1] == b.of[1] && a.of[2] == b.of[2];
  }
};
/// Largest number of steps of an expression.
inline constexpr std::size_t max_steps = 64;

/// Steps in the order of computation; the last one gives the result.
struct expression {
  std::string_view name;
  std::array<step, max_steps> steps{};
  std::uint8_t size = 0;

  /// A hash of everything that changes the result; the name does not count.
  constexpr std::uint64_t hash() const {
    std::uint64_t out = size;
    for (std::size_t i = 0; i < size; ++i)
      for (const std::uint64_t word :
           {std::uint64_t{static_cast<std::uint8_t>(steps[i].what)} | std::uint64_t{steps[i].of[0]} << 8 |
                std::uint64_t{steps[i].of[1]} << 16 | std::uint64_t{steps[i].of[2]} << 24,
            std::uint64_t{steps[i].bits}}) {
        out = (out ^ word) * 0x9E3779B97F4A7C15ull;
        out ^= out >> 29;
      }
    return out;
  }
};

}  // namespace intaglio::shader
