// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel head_gate.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::head_gate_kernel> : dispatch_builder {
  using constants = kernels::head_gate_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::head_gate_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append(n.norm != ir::none ? tensor(n.norm).name.view() : "gate");
    const std::uint32_t wide = width(n.in);
    bind_value(at.input, n.in, false);
    bind_value(at.gate, n.up_in, false);
    if (n.norm != ir::none) bind_norm(at.norm_weight, n.norm);
    bind_value(at.output, n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state(at.state);
    k.heads = wide / n.head_dim;
    k.head_dim = n.head_dim;
    k.normed = n.norm != ir::none ? 1u : 0u;
    k.eps = n.eps;
    k.logistic = n.logistic ? 1u : 0u;
    k.per_head = width(n.up_in) != wide ? 1u : 0u;
    k.adds = n.stream != ir::none ? 1u : 0u;
    if (n.head_dim > 512) d_->subgroups = c_.target.work.norm_subgroups;
    d_->groups = {wide / n.head_dim, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
