// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel expert_tiles.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::expert_tiles_kernel> : dispatch_builder {
  using constants = kernels::expert_tiles_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::expert_tiles_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    const std::uint32_t tiles = lists(n);
    d_->label.append("expert tiles");
    bind_value(at.choice, n.in, false);
    bind(at.output, {region::arena, 0, placement_.offset(n.out)}, list_bytes(n), true);
    bind_state(at.state);
    k.experts = n.experts;
    k.experts_used = n.top_k;
    k.list_tokens = n.list_tokens;
    k.tiles = tiles;
    k.max_tokens = c_.tokens;
    d_->subgroups = c_.target.work.norm_subgroups;
    d_->groups = {n.experts, 1, 1};
  }
};

}  // namespace intaglio::plan
