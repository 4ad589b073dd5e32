// SPDX-License-Identifier: MIT
// The kernel head_rescore: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// head_rescore: exact logits, as dense_matmul has them, in the place of the bounds of all rows that may be asked for;
/// bounds of the rest stay. lowest: [lowest_count]; firsts: as dense_matmul's, of the exact logits.
inline constexpr kernel_interface head_rescore_interface{
    "head_rescore",
    {{{"y"}, {"weight"}, {"bounds"}, {"lowest"}, {"firsts"}, {"state"}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"lowest_count"}, {"subgroup_width"}}}};

struct head_rescore_kernel {
  static constexpr kernel id = kernel::head_rescore;
  static constexpr const kernel_interface& face = head_rescore_interface;
  static constexpr candidate candidates[] = {{variant::head_rescore, {}}};
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
