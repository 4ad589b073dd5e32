// SPDX-License-Identifier: MIT
// The kernel head_gate: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// output = x * f(gate), f32 [tokens, heads, head_dim]; x is the input or, where `normed` is 1, its heads' rms_norm
/// with norm_weight [head_dim]; f(g) = 1 / (1 + exp(-g)) where `logistic` is 1, else g / (1 + exp(-g)). gate: f32 as
/// the input, or one of each head where `per_head` is 1. Where `adds` is 1 it is added to the output. One workgroup a
/// head (x) of a token (y); head_dim a multiple of 4.
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

struct head_gate_kernel {
  static constexpr kernel id = kernel::head_gate;
  static constexpr const kernel_interface& face = head_gate_interface;
  static constexpr candidate candidates[] = {{variant::head_gate, {}}};
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
