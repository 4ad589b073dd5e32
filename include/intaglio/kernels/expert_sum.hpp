// SPDX-License-Identifier: MIT
// The kernel expert_sum: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The weighted sum of experts: output[token, :] += sum over j of weight j of choice[token] times input[token * k + j,
/// :], f32 [tokens, width]; width: a multiple of 4. biased 1: the expert's bias, f32 [experts, width], is added to its
/// input first. stores 1: the sum replaces the output. One workgroup a token (y).
inline constexpr kernel_interface expert_sum_interface{
    "expert_sum",
    {{{"input"}, {"choice"}, {"output"}, {"state"}, {"bias"}}},
    {{{"workgroup_size"}, {"width"}, {"experts_used"}, {"biased"}, {"stores"}}}};

/// Descriptor of the kernel expert_sum, which adds the weighted results of experts.
struct expert_sum_kernel {
  static constexpr kernel id = kernel::expert_sum;
  static constexpr const kernel_interface& face = expert_sum_interface;
  static constexpr candidate candidates[] = {{variant::expert_sum, {}}};
  template <class T>
  struct push {
    T input, choice, output, state, bias;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    std::uint32_t experts_used{};
    std::uint32_t biased{};
    std::uint32_t stores{};
  };
};

}  // namespace intaglio::kernels
