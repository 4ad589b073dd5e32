// SPDX-License-Identifier: MIT
// The kernel head_gate: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Gates attention's heads: output = x * f(gate), f32 [tokens, heads, head_dim]. x is the input or, with normed 1,
/// rms_norm of its heads with norm_weight [head_dim]. f(g) = 1 / (1 + exp(-g)) with logistic 1, else g / (1 + exp(-g)).
/// gate: f32 of the input's shape, or one for each head with per_head 1. adds 1: the result is added to the output. One
/// workgroup a head (x) of a token (y); head_dim: a multiple of 4.
inline constexpr kernel_interface head_gate_interface{"head_gate",
                                                      {{{"input"}, {"gate"}, {"norm_weight"}, {"output"}, {"state"}}},
                                                      {{{"workgroup_size"},
                                                        {"heads"},
                                                        {"head_dim"},
                                                        {"normed"},
                                                        {"eps", field_type::f32},
                                                        {"logistic"},
                                                        {"per_head"},
                                                        {"adds"}}}};

/// Descriptor of the kernel head_gate, which multiplies the heads of attention by their gates.
struct head_gate_kernel {
  static constexpr kernel id = kernel::head_gate;
  static constexpr const kernel_interface& face = head_gate_interface;
  static constexpr candidate candidates[] = {{variant::head_gate, {}}};
  template <class T>
  struct push {
    T input, gate, norm_weight, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t heads{};
    std::uint32_t head_dim{};
    std::uint32_t normed{};
    float eps{};
    std::uint32_t logistic{};
    std::uint32_t per_head{};
    std::uint32_t adds{};
  };
};

}  // namespace intaglio::kernels
