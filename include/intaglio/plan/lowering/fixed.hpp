// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel fixed.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::fixed_kernel> : dispatch_builder {
  using constants = kernels::fixed_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::fixed_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    const std::uint32_t rows = (std::max)(1u, n.top_k), columns_of_row = width(n.in) / rows;
    d_->label.append(n.norm != ir::none ? tensor(n.norm).name.view()
                                        : graph_.values[static_cast<std::size_t>(n.in)].name.view());
    bind_value(at.input, n.in, false);
    if (n.norm != ir::none) bind_norm(at.norm_weight, n.norm);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.width = columns_of_row;
    k.prologue = n.prologue;
    k.eps = n.eps;
    k.rows_per_token = rows;
    k.tiled = n.weights[0] != ir::none && kernels::wants_tiles(*codec_of(tensor(n.weights[0]).type), 8) ? 1u : 0u;
    const std::uint32_t columns = 8 * 32 * c_.target.work.norm_subgroups;  // columns that a workgroup handles at once
    d_->subgroups = n.norm != ir::none ? norm_subgroups() : c_.target.work.norm_subgroups;
    d_->groups = {n.norm != ir::none ? 1 : (columns_of_row + columns - 1) / columns, c_.tokens * rows, 1};
  }
};

}  // namespace intaglio::plan
