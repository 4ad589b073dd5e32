// SPDX-License-Identifier: MIT
// The kernel head_screen: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The head of one token in two steps, where the sampler asks for the largest logits alone (docs/kernels.md, "Screened
/// head"). head_screen: upper bounds of all logits from rows of int8 (kernels/row_codes.hpp), f32 [rows]; of each
/// workgroup the largest lower bound, lowest f32 [groups]; and the normalised activations, y f32 [columns]. columns a
/// multiple of 16. Where the sampler asks for more it leaves y alone.
inline constexpr kernel_interface head_screen_interface{
    "head_screen",
    {{{"input"}, {"norm_weight"}, {"codes"}, {"scales"}, {"bounds"}, {"y"}, {"lowest"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"eps", field_type::f32}, {"subgroup_width"}}}};

struct head_screen_kernel {
  static constexpr kernel id = kernel::head_screen;
  static constexpr const kernel_interface& face = head_screen_interface;
  static constexpr candidate candidates[] = {{variant::head_screen, demand::narrow_loads | demand::integer_dot},
                                             {variant::head_screen_portable, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    float eps{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
