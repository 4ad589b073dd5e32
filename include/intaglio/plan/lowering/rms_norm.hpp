// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel rms_norm.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::rms_norm_kernel> : dispatch_builder {
  using constants = kernels::rms_norm_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::rms_norm_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append(tensor(n.norm).name.view());
    bind_value(at.input, n.in, false);
    bind_norm(at.norm_weight, n.norm);
    if (n.biases[0] != ir::none) bind_norm(at.bias, n.biases[0]);
    if (n.centered) k.centered = n.biases[0] != ir::none ? 1u : 2u;
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    const std::uint32_t groups = n.head_dim != 0 ? width(n.in) / n.head_dim : 1;
    k.width = width(n.in) / groups;
    k.eps = n.eps;
    d_->subgroups = norm_subgroups();
    d_->groups = {groups, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
