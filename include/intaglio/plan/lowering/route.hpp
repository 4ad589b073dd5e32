// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel route.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::route_kernel> : dispatch_builder {
  using constants = kernels::route_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::route_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    if (n.in == ir::none) return n.over_all ? all(n) : state(n);
    d_->label.append("route");
    bind_value(at.logits, n.in, false);
    if (n.biases[0] != ir::none) {
      bind_norm(at.bias, n.biases[0]);
      k.biased = 1u;
    }
    if (n.factor != ir::none) {
      bind_norm(at.scale, n.factor);
      k.scaled = 1u;
    }
    bind_value(at.choice, n.out, true);
    bind_state(at.state);
    k.experts = n.experts;
    k.experts_used = n.top_k;
    k.over_all = n.over_all ? 1u : 0u;
    k.score = static_cast<std::uint32_t>(n.score);
    k.factor = n.scale;
    k.added = n.eps;
    k.least = n.least;
    if (n.groups != 0) k.groups = n.groups, k.groups_used = n.groups_used;
    d_->subgroups = (std::min)(c_.target.work.norm_subgroups, (n.experts + 31) / 32);
    d_->groups = {1, c_.tokens, 1};
  }

 private:
  /// Names all experts in order.
  constexpr void all(const node& n) {
    d_->label.append("heads");
    bind_value(at.choice, n.out, true);
    bind_state(at.state);
    k.experts = k.experts_used = n.experts;
    k.stated = 2u;
    d_->subgroups = (std::min)(c_.target.work.norm_subgroups, (n.experts + 31) / 32);
    d_->groups = {1, c_.tokens, 1};
  }
  /// Reads the choice (the adapter) from the state.
  constexpr void state(const node& n) {
    d_->label.append("adapters");
    bind_value(at.choice, n.out, true);
    bind_state(at.state);
    k.experts = n.experts;
    k.experts_used = 1u;
    k.stated = 1u;
    k.slot_words = c_.slot_words();
    d_->groups = {1, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
