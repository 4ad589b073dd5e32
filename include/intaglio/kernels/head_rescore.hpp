// SPDX-License-Identifier: MIT
// The kernel head_rescore: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The second step of a screened head: computes exact logits, as dense_matmul does, for all rows that the sampler may
/// need, and writes them over these rows' bounds. Bounds of other rows stay. lowest: [lowest_count]; firsts: as in
/// dense_matmul, of the exact logits.
inline constexpr kernel_interface head_rescore_interface{
    "head_rescore",
    {{{"y"}, {"weight"}, {"bounds"}, {"lowest"}, {"firsts"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"lowest_count"}, {"subgroup_width"}}}};

/// Descriptor of the kernel head_rescore, which computes the exact logits of a screened head.
struct head_rescore_kernel {
  static constexpr kernel id = kernel::head_rescore;
  static constexpr const kernel_interface& face = head_rescore_interface;
  static constexpr candidate candidates[] = {{variant::head_rescore, {}}};
  template <class T>
  struct push {
    T y, weight, bounds, lowest, firsts, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec weight_element{};
    std::uint32_t lowest_count{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
