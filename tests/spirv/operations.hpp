// SPDX-License-Identifier: MIT
// What instructions of SPIR-V compute of an invocation's own words, as kernels of this library use them: IEEE f32, each
// operation rounded by itself. A value of f16 is kept as the f32 of the same number.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "intaglio/core/float16.hpp"

namespace spirv {

enum opcode : std::uint32_t {
  op_undef = 1,
  op_ext_inst = 12,
  op_type_void = 19,
  op_type_bool = 20,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_array = 28,
  op_type_runtime_array = 29,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_type_function = 33,
  op_constant_true = 41,
  op_constant = 43,
  op_constant_composite = 44,
  op_spec_constant_true = 48,
  op_spec_constant_false = 49,
  op_spec_constant = 50,
  op_spec_constant_composite = 51,
  op_spec_constant_op = 52,
  op_function = 54,
  op_variable = 59,
  op_load = 61,
  op_store = 62,
  op_access_chain = 65,
  op_decorate = 71,
  op_member_decorate = 72,
  op_vector_extract_dynamic = 77,
  op_vector_shuffle = 79,
  op_composite_construct = 80,
  op_composite_extract = 81,
  op_composite_insert = 82,
  op_copy_object = 83,
  op_convert_f_to_s = 110,
  op_convert_s_to_f = 111,
  op_convert_u_to_f = 112,
  op_u_convert = 113,
  op_f_convert = 115,
  op_convert_ptr_to_u = 117,
  op_convert_u_to_ptr = 120,
  op_bitcast = 124,
  op_s_negate = 126,
  op_f_negate = 127,
  op_i_add = 128,
  op_f_add = 129,
  op_i_sub = 130,
  op_f_sub = 131,
  op_i_mul = 132,
  op_f_mul = 133,
  op_u_div = 134,
  op_f_div = 136,
  op_u_mod = 137,
  op_vector_times_scalar = 142,
  op_i_add_carry = 149,
  op_u_mul_extended = 151,
  op_any = 154,
  op_all = 155,
  op_is_nan = 156,
  op_logical_or = 166,
  op_logical_and = 167,
  op_logical_not = 168,
  op_select = 169,
  op_i_equal = 170,
  op_i_not_equal = 171,
  op_u_greater = 172,
  op_s_greater = 173,
  op_u_greater_equal = 174,
  op_u_less = 176,
  op_s_less = 177,
  op_u_less_equal = 178,
  op_f_ord_equal = 180,
  op_f_unord_not_equal = 183,
  op_f_ord_less = 184,
  op_f_ord_greater = 186,
  op_f_ord_less_equal = 188,
  op_shift_right = 194,
  op_shift_right_arithmetic = 195,
  op_shift_left = 196,
  op_or = 197,
  op_xor = 198,
  op_and = 199,
  op_not = 200,
  op_bit_field_insert = 201,
  op_bit_field_s_extract = 202,
  op_control_barrier = 224,
  op_memory_barrier = 225,
  op_atomic_i_add = 234,
  op_phi = 245,
  op_loop_merge = 246,
  op_selection_merge = 247,
  op_label = 248,
  op_branch = 249,
  op_branch_conditional = 250,
  op_switch = 251,
  op_return = 253,
  op_unreachable = 255,
  op_shuffle = 345,
  op_shuffle_xor = 346,
  op_s_dot = 4450,
  op_u_dot = 4451,
  op_su_dot = 4452,
  op_type_matrix = 4456,
  op_matrix_mul_add = 4459
};
enum decoration_number : std::uint32_t {
  decoration_spec_id = 1,
  decoration_array_stride = 6,
  decoration_built_in = 11,
  decoration_offset = 35
};
/// Instructions of GLSL.std.450.
enum extended : std::uint32_t {
  round_even = 2,
  f_abs = 4,
  square_root = 31,
  f_min = 37,
  u_min = 38,
  s_min = 39,
  f_max = 40,
  u_max = 41,
  s_max = 42,
  u_clamp = 44,
  s_clamp = 45,
  fused = 50,
  pack_half = 58,
  unpack_half = 62
};

constexpr bool has_result(std::uint32_t code) {
  return code == op_ext_inst || code == op_load || code == op_access_chain || code == op_variable ||
         (code >= op_vector_extract_dynamic && code <= op_bit_field_s_extract) || code == op_atomic_i_add ||
         code == op_phi || code == op_shuffle || code == op_shuffle_xor || (code >= op_s_dot && code <= op_su_dot) ||
         code == op_matrix_mul_add || code == op_undef;
}

inline float real(std::uint32_t word) { return std::bit_cast<float>(word); }
inline std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline std::int32_t whole(std::uint32_t word) { return static_cast<std::int32_t>(word); }
/// The nearest f16, as f32. A double is rounded once: bits that an f32 has no room for are kept in its last one.
inline float half_of(double value) {
  float near = static_cast<float>(value);
  if (static_cast<double>(near) != value && std::isfinite(near)) {
    if (std::abs(static_cast<double>(near)) > std::abs(value)) near = std::nextafter(near, 0.f);
    near = std::bit_cast<float>(std::bit_cast<std::uint32_t>(near) | 1);
  }
  return intaglio::f32_from_f16(intaglio::f16_from_f32(near));
}

/// Components of 32 bits of up to two operands. @return whether the code is one of these
inline bool compute_word(std::uint32_t code, std::uint32_t a, std::uint32_t b, std::uint32_t& y) {
  switch (code) {
    case op_u_convert:
    case op_f_convert:
      y = a;
      break;
    case op_convert_f_to_s: {
      const float x = real(a);
      y = !(x >= -2147483648.f) ? 0x80000000u
          : x >= 2147483648.f   ? 0x7fffffffu
                                : static_cast<std::uint32_t>(static_cast<std::int32_t>(x));
      break;
    }
    case op_convert_s_to_f:
      y = bits(static_cast<float>(whole(a)));
      break;
    case op_convert_u_to_f:
      y = bits(static_cast<float>(a));
      break;
    case op_s_negate:
      y = 0u - a;
      break;
    case op_f_negate:
      y = a ^ 0x80000000u;
      break;
    case op_i_add:
      y = a + b;
      break;
    case op_i_sub:
      y = a - b;
      break;
    case op_i_mul:
      y = a * b;
      break;
    case op_f_add:
      y = bits(real(a) + real(b));
      break;
    case op_f_sub:
      y = bits(real(a) - real(b));
      break;
    case op_f_mul:
      y = bits(real(a) * real(b));
      break;
    case op_f_div:
      y = bits(real(a) / real(b));
      break;
    case op_u_div:
      y = b == 0 ? ~0u : a / b;
      break;
    case op_u_mod:
      y = b == 0 ? ~0u : a % b;
      break;
    case op_is_nan:
      y = std::isnan(real(a));
      break;
    case op_logical_or:
      y = a | b;
      break;
    case op_logical_and:
      y = a & b;
      break;
    case op_logical_not:
      y = a == 0;
      break;
    case op_i_equal:
      y = a == b;
      break;
    case op_i_not_equal:
      y = a != b;
      break;
    case op_u_greater:
      y = a > b;
      break;
    case op_s_greater:
      y = whole(a) > whole(b);
      break;
    case op_u_greater_equal:
      y = a >= b;
      break;
    case op_u_less:
      y = a < b;
      break;
    case op_s_less:
      y = whole(a) < whole(b);
      break;
    case op_u_less_equal:
      y = a <= b;
      break;
    case op_f_ord_equal:
      y = real(a) == real(b);
      break;
    case op_f_unord_not_equal:
      y = !(real(a) == real(b));
      break;
    case op_f_ord_less:
      y = real(a) < real(b);
      break;
    case op_f_ord_greater:
      y = real(a) > real(b);
      break;
    case op_f_ord_less_equal:
      y = real(a) <= real(b);
      break;
    case op_shift_right:
      y = a >> (b & 31);
      break;
    case op_shift_right_arithmetic:
      y = static_cast<std::uint32_t>(whole(a) >> (b & 31));
      break;
    case op_shift_left:
      y = a << (b & 31);
      break;
    case op_or:
      y = a | b;
      break;
    case op_xor:
      y = a ^ b;
      break;
    case op_and:
      y = a & b;
      break;
    case op_not:
      y = ~a;
      break;
    default:
      return false;
  }
  return true;
}
/// Components of 64 bits.
inline bool compute_wide(std::uint32_t code, std::uint64_t a, std::uint64_t b, std::uint64_t& y) {
  switch (code) {
    case op_u_convert:
      y = a;
      break;
    case op_i_add:
      y = a + b;
      break;
    case op_i_sub:
      y = a - b;
      break;
    case op_i_mul:
      y = a * b;
      break;
    case op_or:
      y = a | b;
      break;
    case op_and:
      y = a & b;
      break;
    case op_shift_right:
      y = a >> (b & 63);
      break;
    default:
      return false;
  }
  return true;
}
/// Computes an instruction of GLSL.std.450, by component.
inline bool compute_extended(std::uint32_t which, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& y) {
  switch (which) {
    case round_even:
      y = bits(std::nearbyint(real(a)));
      break;
    case f_abs:
      y = a & 0x7fffffffu;
      break;
    case square_root:
      y = bits(std::sqrt(real(a)));
      break;
    case f_min:
      y = real(b) < real(a) ? b : a;
      break;
    case u_min:
      y = b < a ? b : a;
      break;
    case s_min:
      y = whole(b) < whole(a) ? b : a;
      break;
    case f_max:
      y = real(a) < real(b) ? b : a;
      break;
    case u_max:
      y = a < b ? b : a;
      break;
    case s_max:
      y = whole(a) < whole(b) ? b : a;
      break;
    case u_clamp:
      y = a < b ? b : a > c ? c : a;
      break;
    case s_clamp:
      y = whole(a) < whole(b) ? b : whole(a) > whole(c) ? c : a;
      break;
    case fused:
      y = bits(std::fma(real(a), real(b), real(c)));
      break;
    case pack_half:
    case unpack_half:
      break;
    default:
      return false;
  }
  return true;
}
/// Four products of bytes. @param a_signed whether a's are
inline std::uint32_t dot(std::uint32_t a, std::uint32_t b, bool a_signed, bool b_signed) {
  std::uint32_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t x = a >> 8 * i & 255, y = b >> 8 * i & 255;
    sum += static_cast<std::uint32_t>((a_signed ? static_cast<std::int8_t>(x) : static_cast<int>(x)) *
                                      (b_signed ? static_cast<std::int8_t>(y) : static_cast<int>(y)));
  }
  return sum;
}

/// Whether `compute` or the machine has it.
template <class Instruction>
bool knows(const Instruction& of) {
  std::uint32_t y = 0;
  std::uint64_t wide = 0;
  switch (of.code) {
    case op_load:
    case op_store:
    case op_access_chain:
    case op_vector_extract_dynamic:
    case op_vector_shuffle:
    case op_composite_construct:
    case op_composite_extract:
    case op_composite_insert:
    case op_vector_times_scalar:
    case op_i_add_carry:
    case op_u_mul_extended:
    case op_any:
    case op_all:
    case op_select:
    case op_bit_field_insert:
    case op_bit_field_s_extract:
    case op_control_barrier:
    case op_memory_barrier:
    case op_atomic_i_add:
    case op_shuffle:
    case op_shuffle_xor:
    case op_matrix_mul_add:
    case op_s_dot:
    case op_u_dot:
    case op_su_dot:
    case op_undef:
      return true;
    case op_ext_inst:
      return compute_extended(of.detail, 0, 0, 0, y);
    default:
      return of.words == 2 || of.a_words == 2 ? compute_wide(of.code, 0, 0, wide) : compute_word(of.code, 0, 1, y);
  }
}

/// One instruction on an invocation's words. @param of lists of indices
template <class Instruction, class Program>
void compute(const Instruction& i, std::uint32_t* w, const Program& of) {
  std::uint32_t *to = w + i.to, *a = w + i.a, *b = w + i.b, *c = w + i.c;
  const auto wide = [](const std::uint32_t* from) { return from[0] | std::uint64_t{from[1]} << 32; };
  switch (i.code) {
    case op_undef:
      return;
    case op_composite_extract:
      for (std::uint32_t k = 0; k < i.words; ++k) to[k] = a[k];
      return;
    case op_composite_insert:
      for (std::uint32_t k = 0; k < i.words; ++k) to[k] = b[k];
      for (std::uint32_t k = 0; k < i.a_words; ++k) to[i.c + k] = a[k];
      return;
    case op_composite_construct:
    case op_vector_shuffle: {
      std::uint32_t k = 0;
      for (const std::uint32_t from : of.lists[i.detail]) to[k++] = w[from];
      return;
    }
    case op_vector_extract_dynamic:
      to[0] = a[b[0]];
      return;
    case op_vector_times_scalar:
      for (std::uint32_t k = 0; k < i.count; ++k) to[k] = bits(real(a[k]) * real(b[0]));
      return;
    case op_i_add_carry:
      to[0] = a[0] + b[0], to[1] = to[0] < b[0];
      return;
    case op_u_mul_extended: {
      const std::uint64_t product = std::uint64_t{a[0]} * b[0];
      to[0] = static_cast<std::uint32_t>(product), to[1] = static_cast<std::uint32_t>(product >> 32);
      return;
    }
    case op_any:
    case op_all: {
      std::uint32_t ones = 0;
      for (std::uint32_t k = 0; k < i.count; ++k) ones += a[k];
      to[0] = i.code == op_any ? ones != 0 : ones == i.count;
      return;
    }
    case op_select:
      for (std::uint32_t k = 0; k < i.count * i.words; ++k)
        to[k] = a[i.a_words != 0 ? k / i.words : 0] != 0 ? b[k] : c[k];
      return;
    case op_bit_field_insert: {
      const std::uint32_t count = w[i.detail], mask = (count == 32 ? ~0u : (1u << count) - 1) << c[0];
      to[0] = (a[0] & ~mask) | (b[0] << c[0] & mask);
      return;
    }
    case op_bit_field_s_extract:
      for (std::uint32_t k = 0; k < i.count; ++k)
        to[k] = c[0] == 0 ? 0 : static_cast<std::uint32_t>(whole(a[k] << (32 - b[0] - c[0])) >> (32 - c[0]));
      return;
    case op_s_dot:
    case op_u_dot:
    case op_su_dot:
      to[0] = dot(a[0], b[0], i.code != op_u_dot, i.code == op_s_dot);
      return;
    case op_ext_inst:
      if (i.detail == pack_half) {
        to[0] = intaglio::f16_from_f32(real(a[0])) | std::uint32_t{intaglio::f16_from_f32(real(a[1]))} << 16;
      } else if (i.detail == unpack_half) {
        const std::uint32_t both = a[0];
        for (int k = 0; k < 2; ++k) to[k] = bits(intaglio::f32_from_f16(static_cast<std::uint16_t>(both >> 16 * k)));
      } else {
        for (std::uint32_t k = 0; k < i.words; ++k) {
          std::uint32_t y = 0;
          if (i.half && i.detail == fused) y = bits(half_of(std::fma(double{real(a[k])}, real(b[k]), real(c[k]))));
          else compute_extended(i.detail, a[k], i.b != 0 ? b[k] : 0, i.c != 0 ? c[k] : 0, y);
          to[k] = y;
        }
      }
      return;
    default:
      break;
  }
  if (i.words == 2 || i.a_words == 2) {  // of 64 bits: what is computed, or what it is computed of
    for (std::uint32_t k = 0; k < i.count; ++k) {
      std::uint64_t y = 0;
      const std::uint64_t first = i.a_words == 2 ? wide(a + 2 * k) : a[k];
      // A shift's distance may have 32 bits.
      compute_wide(i.code, first, i.b != 0 ? wide(b + 2 * k) : 0, y);
      to[i.words * k] = static_cast<std::uint32_t>(y);
      if (i.words == 2) to[2 * k + 1] = static_cast<std::uint32_t>(y >> 32);
    }
    return;
  }
  for (std::uint32_t k = 0; k < i.count; ++k) {
    std::uint32_t y = 0;
    compute_word(i.code, a[k], b[k], y);
    to[k] = i.half ? bits(half_of(real(y))) : y;
  }
}

}  // namespace spirv
