// SPDX-License-Identifier: MIT
// The kernel norm_add: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// output[token, :] += rms_norm(input[token, :]) * norm_weight, f32 [tokens, width]. One workgroup a token (y). With
/// parts 2, 4 or 8, of one token: the input is the sum of this number of vectors (walk_sum's splits), one behind the
/// other, added by halves, lower + higher. biased 1: output += input + norm_weight, which is a bias then.
inline constexpr kernel_interface norm_add_interface{
    "norm_add",
    {{{"input"}, {"norm_weight"}, {"output"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}, {"parts"}, {"biased"}}}};

struct norm_add_kernel {
  static constexpr kernel id = kernel::norm_add;
  static constexpr candidate candidates[] = {{variant::norm_add, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    float eps{};
    std::uint32_t subgroup_width{};
    std::uint32_t parts{};
    std::uint32_t biased{};
  };
};

}  // namespace intaglio::kernels
