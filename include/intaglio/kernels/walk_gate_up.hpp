// SPDX-License-Identifier: MIT
// The kernel walk_gate_up: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The gate and up products of an exact walk, for one token, feature by feature. x is quantised as by ternary_matmul's
/// prologue norm_quantize. gate = gate_f . x; if it is above 0, output[f] = gate^2 * (up_f . x), else 0 without a read
/// of up_f. The result has the bits of ternary_matmul with epilogue gated, except that 0 is +0. input f32 [columns];
/// weight: gate's tiles in plain order, as for ternary_matmul; up: feature rows (kernels/feature_layout.hpp) [rows,
/// columns]; scales f32 of gate and up; output f32 [rows]. rows: a multiple of 4; columns: of 16.
/// Grid x strides over groups of 4 features; a workgroup has `features` features, a multiple of 4. gates: none, or the
/// memory for the gates of all features, f32 [rows].
/// totals: words for walk_down. They are the sum of squares of every four values, f32 [rows / 4]; the largest |value *
/// value_norm| of each workgroup, f32 [workgroups]; and `sum_words` zeros, in which walk_down's workgroups add up.
inline constexpr kernel_interface walk_gate_up_interface{"walk_gate_up",
                                                         {{{"input"},
                                                           {"norm_weight"},
                                                           {"weight"},
                                                           {"up"},
                                                           {"scales"},
                                                           {"output"},
                                                           {"state"},
                                                           {"gates"},
                                                           {"value_norm"},
                                                           {"totals"}}},
                                                         {{{"workgroup_size"},
                                                           {"columns"},
                                                           {"rows"},
                                                           {"eps", field_type::f32},
                                                           {"features"},
                                                           {"sum_words"},
                                                           {"subgroup_width"}}}};
/// Number of words of `totals`.
constexpr std::uint64_t walk_total_words(std::uint32_t features, std::uint32_t shares, std::uint32_t sum_words) {
  return std::uint64_t{features / 4} + shares + sum_words;
}

/// Descriptor of the kernel walk_gate_up, which computes the gate and up products of an exact walk.
struct walk_gate_up_kernel {
  static constexpr kernel id = kernel::walk_gate_up;
  static constexpr const kernel_interface& face = walk_gate_up_interface;
  static constexpr candidate candidates[] = {{variant::walk_gate_up_cpu, demand::wide_loads},
                                             {variant::walk_gate_up, demand::integer_dot},
                                             {variant::walk_gate_up_portable, {}}};
  template <class T>
  struct push {
    T input, norm_weight, weight, up, scales, output, state, gates, value_norm, totals;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    float eps{};
    std::uint32_t features{};
    std::uint32_t sum_words{};
    std::uint32_t subgroup_width{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::int8; }
};

}  // namespace intaglio::kernels
