// SPDX-License-Identifier: MIT
// The kernel gated: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// A gated activation: output[token, i] = scale * activation(gate[token, i] / scale, up[token, i]), f32 [tokens, width]
/// (kernels/splice.hpp inserts the activation); width: a multiple of 4. It has two uses. With scale 1 gate and up come
/// from two products, because their weights have two codecs. Or both are logits, which are bounded in place
/// (shader::softcap).
/// up_stride: floats of up from one token to the next; `width` if up has no more. Workgroups split a token's quads (x);
/// each row of workgroups is a token (y).
/// biased 1: rows belong to experts_used experts, whose biases, f32 [experts, width / experts_used], are added to
/// gate and up first; choice is the output of route, and up_stride is width. biased 2: biases are f32 [width] for all
/// tokens. biased 3: there is no up, and gate_bias has parameters of a layer, f32 [4]: a factor of the activation's
/// result for gates above 0, one for other gates, the factor of the gate itself, which is added, and the activation's
/// second operand (shader::xielu); scale is 1.
inline constexpr kernel_interface gated_interface{
    "gated",
    {{{"gate"}, {"up"}, {"output"}, {"state"}, {"choice"}, {"gate_bias"}, {"up_bias"}}},
    {{{"workgroup_size"}, {"width"}, {"scale", field_type::f32}, {"up_stride"}, {"biased"}, {"experts_used"}}}};

/// Descriptor of the kernel gated, which computes a gated activation.
struct gated_kernel {
  static constexpr kernel id = kernel::gated;
  static constexpr const kernel_interface& face = gated_interface;
  static constexpr candidate candidates[] = {{variant::gated, {}}};
  template <class T>
  struct push {
    T gate, up, output, state, choice, gate_bias, up_bias;
  };
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
