// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel norm_quantize.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::norm_quantize_kernel> : dispatch_builder {
  using dispatch_builder::dispatch_builder;

  constexpr void lower(const node& n) {
    if (n.norm != ir::none) d_->label.append(tensor(n.norm).name.view());
    bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_value("output", n.out, true);
    bind_factors(n.out, true);
    bind_state();
    if (n.prologue == kernels::prologue::quantize) set("prologue", n.prologue);
    set("width", width(n.in));
    set("eps", n.eps);
    d_->subgroups = norm_subgroups();
    d_->groups = {1, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
