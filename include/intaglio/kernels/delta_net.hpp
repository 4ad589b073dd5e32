// SPDX-License-Identifier: MIT
// The kernel delta_net: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The gated delta rule, token by token, for each value head. q and k belong to its key head, each divided by its
/// length (1e-6 is added to the square), q also by sqrt(key_dim). With b = 1 / (1 + exp(-beta)) and a = exp(decay *
/// softplus(alpha + shift)): S = a S; d = b (v - S^T k); S = S + k d^T; output = S^T q.
/// S is `recurrent`, f32 [value_heads, key_dim, value_dim]; at position 0 it is not read and counts as 0. qkv: f32
/// [tokens, 2 key_heads * key_dim + value_heads * value_dim], q, then k, then v. output: f32 [tokens, value_heads *
/// value_dim]. decay, shift: f32 [value_heads].
/// Value head h has key head h / (value_heads / key_heads), or h % key_heads with in_turn 1. beta, alpha: f32 with
/// gate_stride floats a token; head h is at h / group * gate_group + h % group, with group = value_heads / key_heads.
/// `parts` workgroups split the columns of a head (x). In a batch (slot_words not 0) token y belongs to slot y, and
/// each slot's S is slot_floats floats after the previous slot's. `lanes` invocations, 1 or 4, share a column. Sums
/// over its rows are made of four sums, each of every fourth row, added as (0 + 1) + (2 + 3).
/// state_space 1: Mamba-2's rule. qkv has v, then k, then q, which are used unchanged; beta is not read; b =
/// softplus(alpha + shift), d = b v, and output = (S^T q + skip v) * gate / (1 + exp(-gate)), with skip: f32
/// [value_heads], gate: f32 [tokens, value_heads * value_dim].
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

/// Descriptor of the kernel delta_net, which computes the gated delta rule.
struct delta_net_kernel {
  static constexpr kernel id = kernel::delta_net;
  static constexpr const kernel_interface& face = delta_net_interface;
  static constexpr std::uint32_t proof_tokens = 5;
  static constexpr candidate candidates[] = {{variant::delta_net, {}}};
  template <class T>
  struct push {
    T qkv, beta, alpha, decay, shift, skip, gate, output, recurrent, state;
  };
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
