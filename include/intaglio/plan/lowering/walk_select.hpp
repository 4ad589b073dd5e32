// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel walk_select.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::walk_select_kernel> : dispatch_builder {
  using constants = kernels::walk_select_kernel::constants;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("ffn_gate nearest");
    bind_value("input", n.in, false);
    bind_value("choice", n.out, true);
    bind_state();
    k.columns = width(n.in);
    k.count = n.nearest;
    d_->subgroups = c_.target.sample_subgroups;
    d_->groups = {1, 1, 1};
  }
};

}  // namespace intaglio::plan
