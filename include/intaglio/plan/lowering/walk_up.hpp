// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel walk_up.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::walk_up_kernel> : dispatch_builder {
  using constants = kernels::walk_up_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::walk_up_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    label(n);
    weight up = matrix(n.weights[0]);
    up.codec = *codec_of(tensor(n.weights[0]).type);
    bind_value(at.input, n.in, false);
    bind_norm(at.norm_weight, n.norm);
    bind_weight(at.weight, up);
    d_->weight_bytes -= up.bytes - up.bytes / up.rows * n.nearest;
    bind_value(at.choice, n.choice, false);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.columns = up.columns;
    k.rows = up.rows;
    k.count = n.nearest;
    k.weight_element = up.codec;
    k.eps = n.eps;
    d_->activation = &*n.act;
    d_->subgroups = c_.target.work.matmul_subgroups;
    d_->groups = {(std::min)(c_.target.work.matmul_groups, (n.nearest + d_->subgroups - 1) / d_->subgroups), 1, 1};
  }
};

}  // namespace intaglio::plan
