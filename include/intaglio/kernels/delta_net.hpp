// SPDX-License-Identifier: MIT
// The kernel delta_net: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The gated delta rule, from token to token, for each value head: with q and k of its key head, each divided by its
/// length (1e-6 added to the square), q by sqrt(key_dim) too, b = 1 / (1 + exp(-beta)) and a = exp(decay *
/// softplus(alpha + shift)): S = a S; d = b (v - S^T k); S = S + k d^T; output = S^T q. S is `recurrent`, f32
/// [value_heads, key_dim, value_dim]; where the position is 0 it is not read, and is 0. qkv: f32 [tokens, 2 key_heads *
/// key_dim + value_heads * value_dim], q, then k, then v. Value head h has key head h / (value_heads / key_heads), or,
/// where in_turn is 1, h % key_heads. beta, alpha: f32, gate_stride floats from one token to the next, of head h at
/// h / group * gate_group + h % group for group = value_heads / key_heads. decay, shift: f32 [value_heads]. output: f32
/// [tokens, value_heads * value_dim]. `parts` workgroups share the columns of a head (x). Of a batch, where slot_words
/// is not 0, a token (y) is a slot's, and its S stands slot_floats floats behind that of the slot before. `lanes`
/// invocations, 1 or 4, share a column; sums over its rows are of four, each of every fourth row, (0 + 1) + (2 + 3).
/// Where `state_space` is 1 it is Mamba-2's rule: qkv has v, then k, then q, which are taken as they are, and beta is
/// not read; b = softplus(alpha + shift), d = b v, and output = (S^T q + skip v) * gate / (1 + exp(-gate)), with skip:
/// f32 [value_heads], gate: f32 as the output.
inline constexpr kernel_interface delta_net_interface{
    "delta_net",
    {{{"qkv"}, {"beta"}, {"alpha"}, {"decay"}, {"shift"}, {"skip"}, {"gate"}, {"output"}, {"recurrent"}, {"state"}}},
    {{{"workgroup_size"},
      {"key_heads"},
      {"value_heads"},
      {"key_dim"},
      {"value_dim"},
      {"in_turn"},
      {"parts"},
      {"gate_stride"},
      {"gate_group"},
      {"slot_words"},
      {"slot_floats"},
      {"lanes"},
      {"state_space"}}}};

struct delta_net_kernel {
  static constexpr kernel id = kernel::delta_net;
  static constexpr const kernel_interface& face = delta_net_interface;
  static constexpr std::uint32_t proof_tokens = 5;
  static constexpr candidate candidates[] = {{variant::delta_net, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t key_heads{};
    std::uint32_t value_heads{};
    std::uint32_t key_dim{};
    std::uint32_t value_dim{};
    std::uint32_t in_turn{};
    std::uint32_t parts{};
    std::uint32_t gate_stride{};
    std::uint32_t gate_group{};
    std::uint32_t slot_words{};
    std::uint32_t slot_floats{};
    std::uint32_t lanes{};
    std::uint32_t state_space{};
  };
};

}  // namespace intaglio::kernels
