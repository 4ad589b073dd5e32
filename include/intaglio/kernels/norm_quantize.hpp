// SPDX-License-Identifier: MIT
// The kernel norm_quantize: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Quantises BitNet's activations: y = rms_norm(x) * w, or x with prologue::quantize; s = 127 / max(max|y|, 1e-5); q =
/// round_half_even(y * s). input f32 [tokens, width]; norm_weight f32 [width]; output int8 [tokens, width]; factors
/// [tokens] of {f32 1 / s, i32 sum of q}. One workgroup a token (y).
inline constexpr kernel_interface norm_quantize_interface{
    "norm_quantize",
    {{{"input"}, {"norm_weight"}, {"output"}, {"factors"}, {"state"}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"subgroup_width"}, {"prologue"}}}};

/// Descriptor of the kernel norm_quantize, which normalises tokens and quantises them to int8.
struct norm_quantize_kernel {
  static constexpr kernel id = kernel::norm_quantize;
  static constexpr const kernel_interface& face = norm_quantize_interface;
  static constexpr candidate candidates[] = {{variant::norm_quantize_cpu, demand::wide_loads},
                                             {variant::norm_quantize, {}}};
  template <class T>
  struct push {
    T input, norm_weight, output, factors, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    float eps{};
    std::uint32_t subgroup_width{};
    kernels::prologue prologue{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::int8; }
};

}  // namespace intaglio::kernels
