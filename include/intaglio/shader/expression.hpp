// SPDX-License-Identifier: MIT
// An element-wise function as plain data: the steps that shader::value (shader/value.hpp) noted.
// reference/activation.hpp computes it on the CPU, kernels/splice.hpp writes it into a SPIR-V module, both step by step
// in this order.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace intaglio::shader {

enum class operation : std::uint8_t {
  gate,
  up,  ///< the parameters
  constant,
  negate,
  absolute,
  exp,  ///< exp as kernels/arithmetic.hpp has it
  add,
  subtract,
  multiply,
  divide,  ///< each rounded
  maximum,
  minimum,  ///< a > b ? a : b, a < b ? a : b: the second where one is no number
  less,
  less_equal,
  equal,
  both,
  either,
  opposite,  ///< truth values
  select,    ///< of[0] ? of[1] : of[2]
};

/// One operation; `of` are the places of its operands among the steps before.
struct step {
  operation what = operation::gate;
  std::array<std::uint8_t, 3> of{};
  std::uint32_t bits = 0;  ///< of a constant
  friend constexpr bool operator==(const step& a, const step& b) {
    return a.what == b.what && a.bits == b.bits && a.of[0] == b.of[0] && a.of[1] == b.of[1] && a.of[2] == b.of[2];
  }
};

inline constexpr std::size_t max_steps = 64;

/// Steps in the order in which they are computed; the last one is the result.
struct expression {
  std::string_view name;
  std::array<step, max_steps> steps{};
  std::uint8_t size = 0;

  /// Changes with anything that changes the result; the name counts for nothing.
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
