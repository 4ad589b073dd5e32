// SPDX-License-Identifier: MIT
// The kernel head_screen: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The first step of a screened head of one token, for samplers that need only the largest logits (docs/kernels.md,
/// "Screened head"). It computes upper bounds of all logits from int8 rows (kernels/row_codes.hpp), f32 [rows]; the
/// largest lower bound of each workgroup, lowest f32 [groups]; and the normalised activations, y f32 [columns].
/// columns: a multiple of 16. If the sampler needs more than the largest logits it writes only y.
inline constexpr kernel_interface head_screen_interface{
    "head_screen",
    {{{"input"}, {"norm_weight"}, {"codes"}, {"scales"}, {"bounds"}, {"y"}, {"lowest"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"eps", field_type::f32}, {"subgroup_width"}}}};

/// Descriptor of the kernel head_screen, which computes upper bounds of the logits from int8 rows.
struct head_screen_kernel {
  static constexpr kernel id = kernel::head_screen;
  static constexpr const kernel_interface& face = head_screen_interface;
  static constexpr candidate candidates[] = {{variant::head_screen, demand::narrow_loads | demand::integer_dot},
                                             {variant::head_screen_portable, {}}};
  template <class T>
  struct push {
    T input, norm_weight, codes, scales, bounds, y, lowest, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    float eps{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
