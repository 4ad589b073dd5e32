// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel delta_net.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::delta_net_kernel> : dispatch_builder {
  using constants = kernels::delta_net_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::delta_net_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append(n.state_space ? "state_space" : "delta_net");
    const delta_net_config& delta = n.delta;
    const std::uint32_t group = delta.value_heads / delta.key_heads;
    const bool together = n.k_in == n.v_in;
    bind_value(at.qkv, n.in, false);
    if (n.state_space) {
      bind_norm(at.skip, n.weights[2]);
      bind_value(at.gate, n.up_in, false);
    } else {
      bind_value(at.beta, n.k_in, false);
    }
    if (together) {  // a head's alpha follows the betas of its key head
      const std::uint64_t after = std::uint64_t{4} * group;
      bind(at.alpha, {region::arena, 0, placement_.offset(n.v_in) + after},
           std::uint64_t{4} * c_.tokens * width(n.v_in) - after, false);
    } else {
      bind_value(at.alpha, n.v_in, false);
    }
    bind_norm(at.decay, n.weights[0]);
    bind_norm(at.shift, n.weights[1]);
    bind_value(at.output, n.out, true);
    bind_kept(at.recurrent, k, n);
    bind_state(at.state);
    k.key_heads = delta.key_heads;
    k.value_heads = delta.value_heads;
    k.key_dim = delta.key_dim;
    k.value_dim = delta.value_dim;
    k.in_turn = delta.in_turn ? 1u : 0u;
    const std::uint32_t parts = (delta.value_dim + 31) / 32;
    k.parts = parts;
    k.gate_stride = width(n.v_in);
    k.gate_group = together ? 2 * group : group;
    d_->subgroups = (std::min)(4u, c_.target.work.norm_subgroups);
    k.state_space = n.state_space ? 1u : 0u;
    k.lanes = d_->subgroups > 1 ? 4u : 1u;  // so that a workgroup of 128 invocations has 32 columns
    d_->groups = {delta.value_heads * parts, c_.batched() ? c_.tokens : 1, 1};
  }
};

}  // namespace intaglio::plan
