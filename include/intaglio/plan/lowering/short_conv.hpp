// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel short_conv.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::short_conv_kernel> : dispatch_builder {
  using constants = kernels::short_conv_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::short_conv_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    label(n);
    const ir::weight& t = tensor(n.weights[0]);
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = weight_layout::matrix,
             .codec = kernels::codec::f32,
             .rows = t.rows,
             .columns = t.columns,
             .bytes = std::uint64_t{4} * t.rows * t.columns};
    w.sources[0] = t.name;
    w.source_rows[0] = t.rows;
    bind_value(at.input, n.in, false);
    bind_weight(at.weight, w);
    if (n.biases[0] != ir::none) bind_norm(at.bias, n.biases[0]);
    bind_value(at.output, n.out, true);
    bind_kept(at.recurrent, k, n);
    bind_state(at.state);
    k.width = t.rows;
    k.taps = n.taps;
    k.multiplied = n.multiplied ? 1u : 0u;
    k.biased = n.biases[0] != ir::none ? 1u : 0u;
    d_->subgroups = c_.target.work.norm_subgroups;
    const std::uint32_t columns = 4 * 32 * d_->subgroups;  // columns that a workgroup handles at once
    d_->groups = {(t.rows + columns - 1) / columns,
                  c_.batched() ? c_.tokens : kernels::short_conv_kernel::rows(c_.tokens, n.taps), 1};
  }
};

}  // namespace intaglio::plan
