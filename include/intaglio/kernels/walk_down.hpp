// SPDX-License-Identifier: MIT
// The kernel walk_down: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The down product of an exact walk, for one token. h is quantised as by ternary_matmul's prologue norm_quantize, and
/// output[row] += the product's row, summed only over features whose int8 value is not 0. The result has the bits of
/// ternary_matmul with epilogue add. input f32 [columns], one value a feature; weight: feature rows [columns, rows],
/// the down vectors of features; scales f32 [1]; output f32 [rows]. columns and rows: multiples of 16.
/// A workgroup computes `words` words of every feature row, 16 rows each (x), for one of `splits` parts of the features
/// (y). The last workgroup of a stripe to finish adds to the output. On CPU drivers words is even. values: none, or the
/// memory for the int8 values times their step, f32 [columns]. totals: as the `shares` workgroups of walk_gate_up wrote
/// it.
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
/// Words of `totals` in which the workgroups of a number of stripes add up: one for each row, and two for each stripe.
constexpr std::uint32_t walk_sum_words(std::uint32_t stripes, std::uint32_t words) {
  return stripes * (16 * words + 2);
}

/// Descriptor of the kernel walk_down, which computes the down product of an exact walk.
struct walk_down_kernel {
  static constexpr kernel id = kernel::walk_down;
  static constexpr const kernel_interface& face = walk_down_interface;
  static constexpr candidate candidates[] = {{variant::walk_down_cpu, demand::wide_loads},
                                             {variant::walk_down, demand::integer_dot},
                                             {variant::walk_down_portable, {}}};
  template <class T>
  struct push {
    T input, norm_weight, weight, scales, output, state, values, totals;
  };
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
