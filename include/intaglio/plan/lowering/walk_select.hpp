// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel walk_select.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::walk_select_kernel> : dispatch_builder {
  using constants = kernels::walk_select_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::walk_select_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("ffn_gate nearest");
    bind_value(at.input, n.in, false);
    bind_value(at.choice, n.out, true);
    bind_state(at.state);
    k.columns = width(n.in);
    k.count = n.nearest;
    d_->subgroups = c_.target.work.sample_subgroups;
    d_->groups = {1, 1, 1};
  }
};

}  // namespace intaglio::plan
