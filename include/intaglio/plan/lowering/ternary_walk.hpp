// SPDX-License-Identifier: MIT
// How the nodes of an exact walk become dispatches of walk_gate_up and walk_down.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"
#include "intaglio/plan/walk_shape.hpp"

namespace intaglio::plan {

/// Operands that both kernels of a walk bind.
class walk_lowering : public dispatch_builder {
 public:
  using dispatch_builder::dispatch_builder;

 protected:
  /// The weight of one of a product's ternary tensors, by itself.
  constexpr weight one_ternary(const node& n, std::size_t index, weight_layout layout) const {
    const ir::weight& t = tensor(n.weights[index]);
    weight w{.source_count = 1,
             .per_layer = t.where == ir::section::period,
             .layout = layout,
             .rows = t.rows,
             .columns = t.columns,
             .bytes = std::uint64_t{t.rows} * t.columns / 4};
    w.sources[0] = t.name;
    w.source_rows[0] = t.rows;
    return w;
  }
  template <class Push, class Constants>
  constexpr void bind_walk(const Push& at, Constants& k, const node& n) {
    label(n);
    bind_value(at.input, n.in, false);
    bind_norm(at.norm_weight, n.norm);
    weight scales = stacked(n, weight_layout::ternary_scales);
    scales.bytes = std::uint64_t{4} * n.weight_count;
    bind_weight(at.scales, scales);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.eps = n.eps;
    d_->subgroups = c_.target.work.matmul_subgroups;
  }
};

template <>
struct lowering_of<kernels::walk_gate_up_kernel> : walk_lowering {
  using constants = kernels::walk_gate_up_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::walk_gate_up_kernel>;
  using walk_lowering::walk_lowering;
  constants k{};

  constexpr void lower(const node& n) {
    const weight gate = one_ternary(n, 0, weight_layout::ternary_tiles);
    bind_walk(at, k, n);
    bind_weight(at.weight, gate);
    bind_weight(at.up, one_ternary(n, 1, weight_layout::feature_rows));
    if (n.gates != ir::none) bind_value(at.gates, n.gates, true);
    const walk_shape shape = walk_shape_of(c_.target, gate.rows, gate.columns);
    bind_norm(at.value_norm, n.value_norm);
    bind(at.totals, {region::arena, 0, partials()}, walk_total_bytes(shape, gate.rows), true);
    k.columns = gate.columns;
    k.rows = gate.rows;
    k.features = shape.features;
    k.sum_words = shape.sum_words;
    d_->groups = {shape.shares, 1, 1};
  }
};

template <>
struct lowering_of<kernels::walk_down_kernel> : walk_lowering {
  using constants = kernels::walk_down_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::walk_down_kernel>;
  using walk_lowering::walk_lowering;
  constants k{};

  constexpr void lower(const node& n) {
    const weight down = one_ternary(n, 0, weight_layout::feature_columns);
    bind_walk(at, k, n);
    note({region::arena, 0, placement_.offset(n.stream)},
         value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_weight(at.weight, down);
    if (n.values != ir::none) bind_value(at.values, n.values, true);
    const walk_shape shape = walk_shape_of(c_.target, down.columns, down.rows);
    bind(at.totals, {region::arena, 0, partials()}, walk_total_bytes(shape, down.columns), true);
    k.columns = down.columns;
    k.rows = down.rows;
    k.words = shape.words;
    k.splits = shape.splits;
    k.shares = shape.shares;
    d_->groups = {shape.stripes, shape.splits, 1};
  }
};

}  // namespace intaglio::plan
