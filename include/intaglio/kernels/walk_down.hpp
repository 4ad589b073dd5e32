// SPDX-License-Identifier: MIT
// The kernel walk_down: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The product behind it for one token: h is quantised as by ternary_matmul's prologue norm_quantize, and output[row]
/// += the product's row, of the features alone whose int8 value is not 0. The bits of ternary_matmul with epilogue add.
/// input f32 [columns], a value a feature; weight: feature rows [columns, rows], what a feature adds to the rows;
/// scales f32 [1]; output f32 [rows]. columns and rows: multiples of 16. A workgroup does `words` words of every
/// feature row, 16 rows each (x), of one of `splits` parts of the features (y); the last to come of a stripe adds to
/// the output. On CPU drivers words is even. values: none, or where the int8 values times their step go, f32 [columns].
/// totals: as walk_gate_up's `shares` workgroups left it.
inline constexpr kernel_interface walk_down_interface{
    "walk_down",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"values"}, {"totals"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"eps", field_type::f32},
      {"words"},
      {"splits"},
      {"shares"},
      {"subgroup_width"}}}};
/// Words of totals that workgroups of a number of stripes add up in: of each row, and two of each stripe.
constexpr std::uint32_t walk_sum_words(std::uint32_t stripes, std::uint32_t words) {
  return stripes * (16 * words + 2);
}

struct walk_down_kernel {
  static constexpr kernel id = kernel::walk_down;
  static constexpr const kernel_interface& face = walk_down_interface;
  static constexpr candidate candidates[] = {{variant::walk_down_cpu, demand::wide_loads},
                                             {variant::walk_down, demand::integer_dot},
                                             {variant::walk_down_portable, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    float eps{};
    std::uint32_t words{};
    std::uint32_t splits{};
    std::uint32_t shares{};
    std::uint32_t subgroup_width{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::int8; }
};

}  // namespace intaglio::kernels
