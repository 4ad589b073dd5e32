// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel walk_trace.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::walk_trace_kernel> : dispatch_builder {
  using constants = kernels::walk_trace_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::walk_trace_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("trace");
    const ir::weight& t = tensor(n.weights[0]);
    weight norms{.source_count = 1,
                 .layout = weight_layout::column_norms,
                 .rows = graph_.layers,
                 .columns = t.columns,
                 .bytes = std::uint64_t{4} * graph_.layers * t.columns};
    norms.sources[0] = t.name;
    norms.source_rows[0] = t.rows;
    k.value_stride = bind_layers(at.values, n.in);
    if (n.choice != ir::none) k.choice_stride = bind_layers(at.choice, n.choice);
    else bind_layers(at.gates, n.gates);
    bind_weight(at.norms, norms);
    bind(at.trace, {region::trace}, trace_shape{n.traced, c_.target.ring_size, graph_.layers}.bytes(), true);
    bind(at.state, {region::state, 0, 0}, std::uint64_t{4} * (kernels::state::tokens + 1), false);
    k.columns = n.nearest;
    k.features = t.columns;
    k.layers = graph_.layers;
    k.count = n.traced;
    k.slot_count = c_.target.ring_size;
    k.listed = n.choice != ir::none ? 1u : 0u;
    d_->subgroups = c_.target.work.sample_subgroups;
    d_->groups = {graph_.layers, 1, 1};
  }
};

}  // namespace intaglio::plan
