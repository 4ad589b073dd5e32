// SPDX-License-Identifier: MIT
// The kernel rms_norm: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Root-mean-square norm: output[token, group, :] = rms_norm(input[token, group, :]) * norm_weight[group, :], f32
/// [tokens, groups, width]. One workgroup a group (x) of a token (y). centered 1, for one group: the mean is subtracted
/// from the input first, and bias, f32 [width], is added to the result (LayerNorm). centered 2: as 1, without a bias.
/// The output may overwrite the input.
inline constexpr kernel_interface rms_norm_interface{
    "rms_norm",
    {{{"input"}, {"norm_weight"}, {"output"}, {"state"}, {"bias"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}, {"centered"}}}};

/// Descriptor of the kernel rms_norm, which computes root-mean-square norms.
struct rms_norm_kernel {
  static constexpr kernel id = kernel::rms_norm;
  static constexpr const kernel_interface& face = rms_norm_interface;
  static constexpr candidate candidates[] = {{variant::rms_norm, {}}};
  template <class T>
  struct push {
    T input, norm_weight, output, state, bias;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    float eps{};
    std::uint32_t subgroup_width{};
    std::uint32_t centered{};
  };
};

}  // namespace intaglio::kernels
