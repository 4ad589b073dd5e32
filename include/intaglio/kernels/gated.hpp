// SPDX-License-Identifier: MIT
// The kernel gated: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// output[token, i] = scale * activation(gate[token, i] / scale, up[token, i]), f32 [tokens, width] (kernels/splice.hpp
/// has the activation); width a multiple of 4. Two products left gate and up because their weights are of two codecs,
/// with scale 1; or both are logits, which are bounded in their place (shader::softcap). up_stride: floats of up from
/// one token to the next, width where it has no more. Workgroups share a token's quads (x); one row of them a token
/// (y). With biased 1 rows are those of experts_used experts, whose biases, f32 [experts, width / experts_used], are
/// added to gate and up first; choice is route's, up_stride is width. With biased 2 the biases are f32 [width], of all
/// tokens.
inline constexpr kernel_interface gated_interface{
    "gated",
    {{{"gate"}, {"up"}, {"output"}, {"state"}, {"choice"}, {"gate_bias"}, {"up_bias"}}},
    {{{"workgroup_size"}, {"width"}, {"scale", field_type::f32}, {"up_stride"}, {"biased"}, {"experts_used"}}}};

struct gated_kernel {
  static constexpr kernel id = kernel::gated;
  static constexpr const kernel_interface& face = gated_interface;
  static constexpr candidate candidates[] = {{variant::gated, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    float scale{};
    std::uint32_t up_stride{};
    std::uint32_t biased{};
    std::uint32_t experts_used{};
  };
};

}  // namespace intaglio::kernels
