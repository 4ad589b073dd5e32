// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel delta_net.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::delta_net_kernel> : dispatch_builder {
  using constants = kernels::delta_net_kernel::constants;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append(n.state_space ? "state_space" : "delta_net");
    const delta_net_config& delta = n.delta;
    const std::uint32_t group = delta.value_heads / delta.key_heads;
    const bool together = n.k_in == n.v_in;
    bind_value("qkv", n.in, false);
    if (n.state_space) {
      bind_norm(n.weights[2], "skip");
      bind_value("gate", n.up_in, false);
    } else {
      bind_value("beta", n.k_in, false);
    }
    if (together) {  // a head's alpha follows the betas of its key head
      const std::uint64_t at = placement_.offset(n.v_in), behind = std::uint64_t{4} * group;
      bind("alpha", {region::arena, 0, at + behind}, std::uint64_t{4} * c_.tokens * width(n.v_in) - behind, false);
    } else {
      bind_value("alpha", n.v_in, false);
    }
    bind_norm(n.weights[0], "decay");
    bind_norm(n.weights[1], "shift");
    bind_value("output", n.out, true);
    bind_kept(k, "recurrent", n);
    bind_state();
    k.key_heads = delta.key_heads;
    k.value_heads = delta.value_heads;
    k.key_dim = delta.key_dim;
    k.value_dim = delta.value_dim;
    k.in_turn = delta.in_turn ? 1u : 0u;
    const std::uint32_t parts = (delta.value_dim + 31) / 32;
    k.parts = parts;
    k.gate_stride = width(n.v_in);
    k.gate_group = together ? 2 * group : group;
    d_->subgroups = (std::min)(4u, c_.target.norm_subgroups);
    k.state_space = n.state_space ? 1u : 0u;
    k.lanes = d_->subgroups > 1 ? 4u : 1u;  // so that a workgroup of 128 invocations has 32 columns
    d_->groups = {delta.value_heads * parts, c_.batched() ? c_.tokens : 1, 1};
  }
};

}  // namespace intaglio::plan
