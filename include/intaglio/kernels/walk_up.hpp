// SPDX-License-Identifier: MIT
// The kernel walk_up: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The up product of chosen features, for one token: output[i] = activation(score, up_f . x) of the i-th feature of
/// walk_select's choice, with x = rms_norm(input) * norm_weight. input f32 [columns]; weight: up vectors [rows,
/// columns], row-major of weight_element; output f32 [count]. columns: a multiple of 8. Grid x strides over features.
inline constexpr kernel_interface walk_up_interface{
    "walk_up",
    {{{"input"}, {"norm_weight"}, {"weight"}, {"choice"}, {"output"}, {"state"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"count"},
      {"weight_element"},
      {"eps", field_type::f32},
      {"subgroup_width"}}}};

/// Descriptor of the kernel walk_up, which computes the up product of chosen features.
struct walk_up_kernel {
  static constexpr kernel id = kernel::walk_up;
  static constexpr const kernel_interface& face = walk_up_interface;
  static constexpr candidate candidates[] = {{variant::walk_up, {}}};
  template <class T>
  struct push {
    T input, norm_weight, weight, choice, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    std::uint32_t count{};
    kernels::codec weight_element{};
    float eps{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
