// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of one of the attention kernels.
#pragma once

#include <algorithm>

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// The attention kernels: for one token, for a small batch, for a chunk, for a chunk in f16.
template <class Kernel>
struct attention_lowering : dispatch_builder {
  using constants = typename Kernel::constants;
  static constexpr auto at = kernels::push_ids<Kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("attention");
    bind_value(at.query, n.in, false);
    bind_cache(at, k, n, false);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.heads = n.heads;
    k.kv_heads = n.kv_heads;
    k.head_dim = n.head_dim;
    k.scale = n.scale;
    k.window = n.window;
    k.softcap = n.softcap;
    k.ahead = n.ahead;
    if constexpr (requires { k.value_dim; }) k.value_dim = n.value_dim;
    if (n.sinks != ir::none) {
      bind_norm(at.sinks, n.sinks);
      k.has_sinks = 1u;
    }
    if constexpr (Kernel::id == kernels::kernel::attention_chunk || Kernel::id == kernels::kernel::attention_f16)
      tile_tokens(n);
    else share_heads(n);
  }

 private:
  /// Gives each workgroup a tile of tokens.
  constexpr void tile_tokens(const node& n) {
    const std::uint32_t tile = Kernel::id == kernels::kernel::attention_chunk ? kernels::attention_tile
                                                                              : kernels::attention_f16_tile(n.head_dim);
    k.max_tokens = c_.tokens;
    d_->subgroups = 4;
    d_->groups = {n.heads, (c_.tokens + tile - 1) / tile, 1};
  }
  /// Gives each workgroup some heads.
  constexpr void share_heads(const node& n) {
    constexpr bool small_batch = Kernel::id == kernels::kernel::attention_batch;
    // Heads share reads of keys and values if there are enough workgroups without sharing.
    const std::uint32_t tokens =
        c_.batched() ? c_.tokens
                     : (std::min)(c_.tokens, c_.target.work.tile_tokens);  // most passes over drafts are short
    const std::uint32_t most = !small_batch                                     ? c_.target.work.attention_heads
                               : n.heads * tokens > c_.target.work.chunk_groups ? kernels::attention_batch_heads
                                                                                : 1;
    std::uint32_t together = (std::max)(1u, (std::min)(most, n.heads / n.kv_heads));
    while (n.heads / n.kv_heads % together != 0) --together;
    k.heads_together = together;
    if constexpr (small_batch) {  // one position an invocation
      d_->subgroups = 8;
      d_->groups = {n.heads / together, c_.tokens, 1};
    } else {
      const std::uint32_t splits = c_.splits(n.window, n.ahead);
      k.splits = splits;
      if (splits > 1) {
        bind(at.partials, {region::arena, 0, partials()},
             kernels::attention_partial_bytes(c_.tokens, n.heads, splits, n.value_width()), true);
        bind(at.counters, {region::state, 0, counters_offset()}, kernels::attention_counter_bytes(c_.tokens, n.heads),
             true);
      }
      d_->subgroups = c_.target.work.attention_subgroups;
      d_->groups = {n.heads / together, c_.tokens, splits};
    }
  }
};

template <>
struct lowering_of<kernels::attention_kernel> : attention_lowering<kernels::attention_kernel> {
  using attention_lowering::attention_lowering;
};
template <>
struct lowering_of<kernels::attention_batch_kernel> : attention_lowering<kernels::attention_batch_kernel> {
  using attention_lowering::attention_lowering;
};
template <>
struct lowering_of<kernels::attention_chunk_kernel> : attention_lowering<kernels::attention_chunk_kernel> {
  using attention_lowering::attention_lowering;
};
template <>
struct lowering_of<kernels::attention_f16_kernel> : attention_lowering<kernels::attention_f16_kernel> {
  using attention_lowering::attention_lowering;
};

}  // namespace intaglio::plan
