// SPDX-License-Identifier: MIT
// Evaluates OpSpecConstantOp on integers and bools. Numbers: SPIR-V specification 1.6, sections 3.49.13 to 3.49.16.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace intaglio::kernels {

/// The value of a constant instruction.
struct specialized_value {
  std::uint32_t id = 0;
  std::uint64_t bits = 0;   ///< zero-extended
  std::uint32_t width = 0;  ///< in bits; 1 for a bool
  bool known = false;       ///< false for floats and composites
};

/// The lowest `width` bits.
constexpr std::uint64_t within(std::uint64_t bits, std::uint32_t width) {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}
/// The value of a signed integer of the given width.
constexpr std::int64_t as_signed(const specialized_value& of) {
  if (of.width == 0 || of.width >= 64) return static_cast<std::int64_t>(of.bits);
  const std::uint64_t sign = std::uint64_t{1} << (of.width - 1);
  return static_cast<std::int64_t>((of.bits ^ sign) - sign);
}

namespace detail {

enum : std::uint32_t {
  op_u_convert = 113,
  op_s_convert = 114,
  op_bitcast = 124,
  op_s_negate = 126,
  op_i_add = 128,
  op_i_sub = 130,
  op_i_mul = 132,
  op_u_div = 134,
  op_s_div = 135,
  op_u_mod = 137,
  op_s_rem = 138,
  op_s_mod = 139,
  op_logical_equal = 164,
  op_logical_not_equal = 165,
  op_logical_or = 166,
  op_logical_and = 167,
  op_logical_not = 168,
  op_select = 169,
  op_i_equal = 170,
  op_i_not_equal = 171,
  op_u_greater = 172,
  op_s_greater = 173,
  op_u_greater_equal = 174,
  op_s_greater_equal = 175,
  op_u_less = 176,
  op_s_less = 177,
  op_u_less_equal = 178,
  op_s_less_equal = 179,
  op_shift_right = 194,
  op_shift_right_arithmetic = 195,
  op_shift_left = 196,
  op_or = 197,
  op_xor = 198,
  op_and = 199,
  op_not = 200
};

/// Quotients and remainders. False if the result is undefined.
constexpr bool divide(std::uint32_t opcode, const specialized_value& a, const specialized_value& b,
                      std::uint64_t& out) {
  if (b.bits == 0) return false;
  if (opcode == op_u_div) return out = a.bits / b.bits, true;
  if (opcode == op_u_mod) return out = a.bits % b.bits, true;
  const std::int64_t x = as_signed(a), y = as_signed(b);
  if (y == -1) {  // the smallest number cannot be negated
    out = opcode == op_s_div ? 0 - a.bits : 0;
    return true;
  }
  const std::int64_t rest = x % y;
  if (opcode == op_s_div) out = static_cast<std::uint64_t>(x / y);
  else if (opcode == op_s_rem) out = static_cast<std::uint64_t>(rest);
  else out = static_cast<std::uint64_t>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  return true;
}
/// Shifts. False if the result is undefined.
constexpr bool shift(std::uint32_t opcode, const specialized_value& a, const specialized_value& b, std::uint64_t& out) {
  if (b.bits >= a.width) return false;
  out = opcode == op_shift_left    ? a.bits << b.bits
        : opcode == op_shift_right ? a.bits >> b.bits
                                   : static_cast<std::uint64_t>(as_signed(a) >> b.bits);
  return true;
}
/// Comparisons; false if the operation is not a comparison.
constexpr bool compare(std::uint32_t opcode, const specialized_value& a, const specialized_value& b,
                       std::uint64_t& out) {
  const std::int64_t x = as_signed(a), y = as_signed(b);
  switch (opcode) {
    case op_logical_equal:
    case op_i_equal:
      return out = a.bits == b.bits, true;
    case op_logical_not_equal:
    case op_i_not_equal:
      return out = a.bits != b.bits, true;
    case op_u_greater:
      return out = a.bits > b.bits, true;
    case op_s_greater:
      return out = x > y, true;
    case op_u_greater_equal:
      return out = a.bits >= b.bits, true;
    case op_s_greater_equal:
      return out = x >= y, true;
    case op_u_less:
      return out = a.bits < b.bits, true;
    case op_s_less:
      return out = x < y, true;
    case op_u_less_equal:
      return out = a.bits <= b.bits, true;
    case op_s_less_equal:
      return out = x <= y, true;
    default:
      return false;
  }
}
/// Operations with one operand; false if the operation is not one of them.
constexpr bool change(std::uint32_t opcode, const specialized_value& a, std::uint64_t& out) {
  switch (opcode) {
    case op_u_convert:
    case op_bitcast:
      return out = a.bits, true;
    case op_s_convert:
      return out = static_cast<std::uint64_t>(as_signed(a)), true;
    case op_s_negate:
      return out = 0 - a.bits, true;
    case op_not:
      return out = ~a.bits, true;
    case op_logical_not:
      return out = a.bits == 0, true;
    default:
      return false;
  }
}

}  // namespace detail

/// Evaluates one operation; the result goes to `out.bits`, with `out.width` bits. False if the result is undefined, or
/// if it is not an operation on integers and bools with this number of operands.
constexpr bool evaluate_specialized(std::uint32_t opcode, std::uint32_t operands,
                                    const std::array<specialized_value, 3>& of, specialized_value& out) {
  using namespace detail;
  const auto& [a, b, c] = of;
  bool known = true;
  if (operands == 1) {
    known = change(opcode, a, out.bits);
  } else if (operands == 3) {
    known = opcode == op_select;
    out.bits = a.bits != 0 ? b.bits : c.bits;
  } else {
    switch (opcode) {
      case op_i_add:
        out.bits = a.bits + b.bits;
        break;
      case op_i_sub:
        out.bits = a.bits - b.bits;
        break;
      case op_i_mul:
        out.bits = a.bits * b.bits;
        break;
      case op_or:
      case op_logical_or:
        out.bits = a.bits | b.bits;
        break;
      case op_and:
      case op_logical_and:
        out.bits = a.bits & b.bits;
        break;
      case op_xor:
        out.bits = a.bits ^ b.bits;
        break;
      default:
        if (opcode >= op_u_div && opcode <= op_s_mod) known = divide(opcode, a, b, out.bits);
        else if (opcode >= op_shift_right && opcode <= op_shift_left) known = shift(opcode, a, b, out.bits);
        else known = compare(opcode, a, b, out.bits);
    }
  }
  out.bits = within(out.bits, out.width);
  return known;
}

}  // namespace intaglio::kernels
