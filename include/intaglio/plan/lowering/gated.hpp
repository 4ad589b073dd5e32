// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel gated.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::gated_kernel> : dispatch_builder {
  using constants = kernels::gated_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::gated_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append(n.by_layer                                      ? "layer_input"
                     : n.act == shader::identity{}                   ? "output.bias"
                     : n.up_in == n.in && n.act == shader::softcap{} ? "softcap"
                                                                     : "ffn_act");
    d_->activation = &*n.act;
    bind_value(at.gate, n.in, false);
    if (n.by_layer) bind_of_layer(at.up, n.up_in, width(n.in));
    else bind_value(at.up, n.up_in, false);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.width = width(n.in);
    k.up_stride = width(n.up_in);
    k.scale = n.scale == 0 ? 1.f : n.scale;
    k.experts_used = (std::max)(1u, n.top_k);
    if (n.biases[0] != ir::none) {
      if (n.choice != ir::none) bind_value(at.choice, n.choice, false);
      bind_norm(at.gate_bias, n.biases[0]);
      bind_norm(at.up_bias, n.biases[1]);
      k.biased = n.choice != ir::none ? 1u : 2u;
    }
    if (n.factor != ir::none) {
      bind_norm(at.gate_bias, n.factor);
      k.biased = 3;
    }
    d_->subgroups = c_.target.work.norm_subgroups;
    const std::uint32_t columns = 4 * 32 * d_->subgroups;  // columns that a workgroup handles at once
    d_->groups = {(width(n.in) + columns - 1) / columns, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
