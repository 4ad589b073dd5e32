// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel route.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::route_kernel> : dispatch_builder {
  using dispatch_builder::dispatch_builder;

  constexpr void lower(const node& n) {
    d_->label.append("route");
    bind_value("logits", n.in, false);
    if (n.biases[0] != ir::none) {
      bind_norm(n.biases[0], "bias");
      set("biased", 1u);
    }
    if (n.factor != ir::none) {
      bind_norm(n.factor, "scale");
      set("scaled", 1u);
    }
    bind_value("choice", n.out, true);
    bind_state();
    set("experts", n.experts);
    set("experts_used", n.top_k);
    set("over_all", n.over_all ? 1u : 0u);
    d_->subgroups = (std::min)(c_.target.norm_subgroups, (n.experts + 31) / 32);
    d_->groups = {1, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
