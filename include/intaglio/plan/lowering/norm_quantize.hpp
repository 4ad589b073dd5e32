// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel norm_quantize.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::norm_quantize_kernel> : dispatch_builder {
  using constants = kernels::norm_quantize_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::norm_quantize_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    if (n.norm != ir::none) d_->label.append(tensor(n.norm).name.view());
    bind_value(at.input, n.in, false);
    if (n.norm != ir::none) bind_norm(at.norm_weight, n.norm);
    bind_value(at.output, n.out, true);
    bind_factors(at.factors, n.out, true);
    bind_state(at.state);
    if (n.prologue == kernels::prologue::quantize) k.prologue = n.prologue;
    k.width = width(n.in);
    k.eps = n.eps;
    d_->subgroups = norm_subgroups();
    d_->groups = {1, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
