// SPDX-License-Identifier: MIT
// How a node becomes an attention, of whichever form.
#pragma once

#include <algorithm>

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// Attention: for one token, for a few, for a chunk, for a chunk in halves.
struct attention_lowering : dispatch_builder {
  using dispatch_builder::dispatch_builder;

  constexpr void lower(const node& n) {
    d_->label.append("attention");
    bind_value("query", n.in, false);
    bind_cache(n, false);
    bind_value("output", n.out, true);
    bind_state();
    set("heads", n.heads);
    set("kv_heads", n.kv_heads);
    set("head_dim", n.head_dim);
    set("scale", n.scale);
    set("window", n.window);
    set("softcap", n.softcap);
    if (n.sinks != ir::none) {
      bind_norm(n.sinks, "sinks");
      set("has_sinks", 1u);
    }
    if (d_->kernel == kernels::kernel::attention_chunk || d_->kernel == kernels::kernel::attention_halves) {
      const std::uint32_t tile = d_->kernel == kernels::kernel::attention_chunk
                                     ? kernels::attention_tile
                                     : kernels::attention_halves_tile(n.head_dim);
      set("max_tokens", c_.tokens);
      d_->subgroups = 4;
      d_->groups = {n.heads, (c_.tokens + tile - 1) / tile, 1};
      return;
    }
    const bool few = d_->kernel == kernels::kernel::attention_few;
    // Heads share what they read where there are workgroups enough without.
    const std::uint32_t tokens =
        c_.batched() ? c_.tokens : (std::min)(c_.tokens, c_.target.tile_tokens);  // most passes over drafts have few
    const std::uint32_t most = !few                                        ? c_.target.attention_heads
                               : n.heads * tokens > c_.target.chunk_groups ? kernels::attention_few_heads
                                                                           : 1;
    std::uint32_t together = (std::max)(1u, (std::min)(most, n.heads / n.kv_heads));
    while (n.heads / n.kv_heads % together != 0) --together;
    set("heads_together", together);
    if (few) {  // a position an invocation
      d_->subgroups = 8;
      d_->groups = {n.heads / together, c_.tokens, 1};
      return;
    }
    const std::uint32_t splits = c_.splits(n.window);
    set("splits", splits);
    if (splits > 1) {
      bind("partials", {region::arena, 0, partials()},
           kernels::attention_partial_bytes(c_.tokens, n.heads, splits, n.head_dim), true);
      bind("counters", {region::state, 0, counters_offset()}, kernels::attention_counter_bytes(c_.tokens, n.heads),
           true);
    }
    d_->subgroups = c_.target.attention_subgroups;
    d_->groups = {n.heads / together, c_.tokens, splits};
  }
};

template <>
struct lowering_of<kernels::attention_kernel> : attention_lowering {
  using attention_lowering::attention_lowering;
};
template <>
struct lowering_of<kernels::attention_few_kernel> : attention_lowering {
  using attention_lowering::attention_lowering;
};
template <>
struct lowering_of<kernels::attention_chunk_kernel> : attention_lowering {
  using attention_lowering::attention_lowering;
};
template <>
struct lowering_of<kernels::attention_halves_kernel> : attention_lowering {
  using attention_lowering::attention_lowering;
};

}  // namespace intaglio::plan
