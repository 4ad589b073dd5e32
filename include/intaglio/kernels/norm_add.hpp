// SPDX-License-Identifier: MIT
// The kernel norm_add: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// output[token, head, :] += rms_norm(input[token, head, :]) * norm_weight, f32 [tokens, heads, width]. One workgroup
/// a head (x), of which there is one but for norms of parts, and token (y). scaled 1: the sum is multiplied by the
/// number behind norm_weight. With parts 2, 4 or 8, of one token: the input is the sum of this number of vectors
/// (walk_sum's splits), one behind the other, added by halves, lower + higher. biased 1: output += input + norm_weight,
/// which is a bias then.
inline constexpr kernel_interface norm_add_interface{
    "norm_add",
    {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}, {"parts"}, {"biased"}, {"scaled"}}}};

struct norm_add_kernel {
  static constexpr kernel id = kernel::norm_add;
  static constexpr const kernel_interface& face = norm_add_interface;
  static constexpr candidate candidates[] = {{variant::norm_add, {}}};
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
