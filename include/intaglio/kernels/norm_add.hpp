// SPDX-License-Identifier: MIT
// The kernel norm_add: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// A norm before an addition: output[token, head, :] += rms_norm(input[token, head, :]) * norm_weight, f32 [tokens,
/// heads, width]. One workgroup a head (x) and token (y); there is one head except in norms of parts. scaled 1: the sum
/// is multiplied by the number that follows norm_weight.
/// parts 2, 4 or 8, for one token: the input is the sum of this number of vectors (walk_sum's splits), stored one after
/// the other; they are added pairwise, lower half + upper half. biased 1: output += input + norm_weight, which is a
/// bias.
inline constexpr kernel_interface norm_add_interface{
    "norm_add",
    {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}, {"parts"}, {"biased"}, {"scaled"}}}};

/// Descriptor of the kernel norm_add, which normalises a value and adds it.
struct norm_add_kernel {
  static constexpr kernel id = kernel::norm_add;
  static constexpr const kernel_interface& face = norm_add_interface;
  static constexpr candidate candidates[] = {{variant::norm_add, {}}};
  template <class T>
  struct push {
    T input, norm_weight, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    float eps{};
    std::uint32_t subgroup_width{};
    std::uint32_t parts{};
    std::uint32_t biased{};
    std::uint32_t scaled{};
  };
};

}  // namespace intaglio::kernels
