// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel expert_sum.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::expert_sum_kernel> : dispatch_builder {
  using constants = kernels::expert_sum_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::expert_sum_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("experts");
    bind_value(at.input, n.in, false);
    bind_value(at.choice, n.choice, false);
    bind_value(at.output, n.out, true);
    if (n.stream == ir::none) k.stores = 1u;
    else
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state(at.state);
    k.width = width(n.in) / n.top_k;
    k.experts_used = n.top_k;
    if (n.biases[0] != ir::none) {
      bind_norm(at.bias, n.biases[0]);
      k.biased = 1u;
    }
    d_->subgroups = c_.target.work.norm_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
