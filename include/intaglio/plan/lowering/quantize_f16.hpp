// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel quantize_f16.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::quantize_f16_kernel> : dispatch_builder {
  using constants = kernels::quantize_f16_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::quantize_f16_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    const bool listed = n.list_tokens != 0;
    const std::uint32_t columns = listed ? n.columns : width(n.in),
                        rows = listed ? lists(n) * n.list_tokens : c_.tokens;
    d_->label.append(n.norm != ir::none ? tensor(n.norm).name.view()
                                        : graph_.values[static_cast<std::size_t>(n.in)].name.view());
    bind_value(at.input, n.in, false);
    if (n.norm != ir::none) bind_norm(at.norm_weight, n.norm);
    bind_f16(at.output, at.factors, n.out, columns, rows, true);
    bind_state(at.state);
    if (listed) {
      bind(at.tiles, {region::arena, 0, placement_.offset(n.choice)}, list_bytes(n), false);
      k.experts_used = n.top_k;
      k.own_input = width(n.in) == columns && n.top_k != 1 ? 0u : 1u;
      k.list_tokens = n.list_tokens;
    }
    k.width = columns;
    k.prologue = n.prologue;
    k.eps = n.eps;
    k.tiled = static_cast<std::uint32_t>(order(n));
    d_->subgroups = norm_subgroups();
    d_->groups = {1, rows, 1};
  }

 private:
  /// The order of x: tiles in a batch. In passes over many rows it is the order in which products load fragments.
  constexpr kernels::f16_order order(const node& n) const {
    using enum kernels::f16_order;
    const kernels::f16_order of_fragments =
        n.weights[0] == ir::none ? rows : kernels::fragment_order(*codec_of(tensor(n.weights[0]).type));
    if (!c_.batched()) return of_fragments;
    if (c_.tokens % 8 != 0) return rows;
    return of_fragments == octets ? tiles_or_octets : of_fragments == blocks ? tiles_or_blocks : tiles;
  }
};

}  // namespace intaglio::plan
