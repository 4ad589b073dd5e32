// SPDX-License-Identifier: MIT
// The kernel gated: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// output[token, i] = activation(gate[token, i], up[token, i]), f32 [tokens, width], which two products left because
/// their weights are of two codecs (kernels/splice.hpp has the activation); width a multiple of 4. Workgroups share a
/// token's quads (x); one row of them a token (y).
inline constexpr kernel_interface gated_interface{
    "gated", {{{"gate"}, {"up"}, {"output"}, {"state"}}}, {{{"workgroup_size"}, {"width"}}}};

struct gated_kernel {
  static constexpr kernel id = kernel::gated;
  static constexpr candidate candidates[] = {{variant::gated, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
  };
};

}  // namespace intaglio::kernels
