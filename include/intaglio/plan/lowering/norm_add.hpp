// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel norm_add.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::norm_add_kernel> : dispatch_builder {
  using constants = kernels::norm_add_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::norm_add_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    const bool biased = n.biases[0] != ir::none;
    const ir::weight_id weight = biased ? n.biases[0] : n.norm;
    d_->label.append(tensor(weight).name.view());
    bind_value(at.input, n.in, false);
    bind_norm(at.norm_weight, weight, n.factor);
    bind_value(at.output, n.out, true);
    note({region::arena, 0, placement_.offset(n.stream)},
         value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state(at.state);
    const std::uint32_t heads = n.head_dim != 0 ? width(n.in) / n.head_dim : 1;
    k.width = width(n.in) / heads;
    k.eps = n.eps;
    k.parts = n.parts;
    k.biased = biased ? 1u : 0u;
    k.scaled = n.factor != ir::none ? 1u : 0u;
    d_->subgroups = c_.target.work.norm_subgroups;
    d_->groups = {heads, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
