// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel walk_sum.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::walk_sum_kernel> : dispatch_builder {
  using constants = kernels::walk_sum_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::walk_sum_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    label(n);
    const ir::weight& t = tensor(n.weights[0]);
    weight down{.source_count = 1,
                .per_layer = t.where == ir::section::period,
                .layout = weight_layout::turned,
                .codec = *codec_of(t.type),
                .rows = t.rows,
                .columns = t.columns};
    down.sources[0] = t.name;
    down.source_rows[0] = t.rows;
    down.bytes = std::uint64_t{t.rows} * t.columns * kernels::info(down.codec).block_bytes;
    bind_value(at.input, n.in, false);
    bind_weight(at.weight, down);
    d_->weight_bytes -= down.bytes - down.bytes / down.columns * n.nearest;
    if (n.choice != ir::none) bind_value(at.choice, n.choice, false);
    bind_value(at.output, n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state(at.state);
    k.columns = down.columns;
    k.rows = down.rows;
    k.count = n.nearest;
    k.weight_element = down.codec;
    k.listed = n.choice != ir::none ? 1u : 0u;
    k.epilogue = n.epilogue;
    const std::uint32_t stripe = n.parts == 1 ? 32 : 64;
    k.stripe = stripe;
    k.splits = n.parts;
    d_->subgroups = c_.target.work.sample_subgroups;
    if (n.parts != 1) d_->subgroups = (std::min)(d_->subgroups, 8u);
    d_->groups = {(down.rows + stripe - 1) / stripe, n.parts, 1};
  }
};

}  // namespace intaglio::plan
