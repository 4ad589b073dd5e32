// SPDX-License-Identifier: MIT
// The kernel expert_sum: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// output[token, :] += sum over j of weight j of choice[token] times input[token * k + j, :], f32 [tokens, width];
/// width a multiple of 4. With biased 1 the expert's bias, f32 [experts, width], is added to its input first; with
/// stores 1 nothing is added to the output. One workgroup a token (y).
inline constexpr kernel_interface expert_sum_interface{
    "expert_sum",
    {{{"input"}, {"choice"}, {"output"}, {"state"}, {"bias"}}},
    {{{"workgroup_size"}, {"width"}, {"experts_used"}, {"biased"}, {"stores"}}}};

struct expert_sum_kernel {
  static constexpr kernel id = kernel::expert_sum;
  static constexpr const kernel_interface& face = expert_sum_interface;
  static constexpr candidate candidates[] = {{variant::expert_sum, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    std::uint32_t experts_used{};
    std::uint32_t biased{};
    std::uint32_t stores{};
  };
};

}  // namespace intaglio::kernels
