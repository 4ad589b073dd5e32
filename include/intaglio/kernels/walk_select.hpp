// SPDX-License-Identifier: MIT
// The kernel walk_select: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Chooses the features of a sparse walk: the `count` of `columns` gate scores, f32, with the largest absolute value;
/// of equal ones the lowest feature. choice u32 [count, 2]: feature and its score's bits, in the order of features. A
/// NaN score counts as the largest. One workgroup, one token.
inline constexpr kernel_interface walk_select_interface{
    "walk_select", {{{"input"}, {"choice"}, {"state"}}}, {{{"workgroup_size"}, {"columns"}, {"count"}}}};

/// Descriptor of the kernel walk_select, which chooses the features of a sparse walk.
struct walk_select_kernel {
  static constexpr kernel id = kernel::walk_select;
  static constexpr const kernel_interface& face = walk_select_interface;
  static constexpr candidate candidates[] = {{variant::walk_select, {}}};
  template <class T>
  struct push {
    T input, choice, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t count{};
  };
};

}  // namespace intaglio::kernels
