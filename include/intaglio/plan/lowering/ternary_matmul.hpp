// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of one of the kernels for ternary weights.
#pragma once

#include <algorithm>

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// Products of ternary weights: for one token, for a small batch, for a chunk, with f32 inputs, unrolled.
template <class Kernel>
struct ternary_lowering : dispatch_builder {
  using constants = typename Kernel::constants;
  static constexpr auto at = kernels::push_ids<Kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    label(n);
    weight w = stacked(n, weight_layout::ternary_tiles);
    const std::uint32_t row_groups = (w.rows + 3) / 4;
    w.bytes = std::uint64_t{row_groups} * (w.columns / 16) * 16;
    weight scales = w;
    scales.layout = weight_layout::ternary_scales;
    scales.bytes = std::uint64_t{4} * n.weight_count;

    bind_value(at.input, n.in, false);
    bind_norm_before(at, n);
    if constexpr (requires { at.factors; })
      if (n.prologue == kernels::prologue::quantized) bind_factors(at.factors, n.in, false);
    bind_weight(at.weight, w);
    bind_weight(at.scales, scales);
    if (n.out != ir::none) bind_value(at.output, n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state(at.state);
    if (n.epilogue == kernels::epilogue::rope_cache) {
      bind_cache(at, k, n, true);
      k.head_dim = n.head_dim;
      k.q_size = w.source_rows[0];
      k.kv_size = w.source_rows[1];
      k.rope_theta = n.rope.theta;
    }
    k.cache_element = c_.target.cache_element;
    k.columns = w.columns;
    k.rows = w.rows;
    k.epilogue = n.epilogue;
    if (n.epilogue == kernels::epilogue::gated) d_->activation = &*n.act;
    if constexpr (Kernel::id == kernels::kernel::ternary_chunk) tile_chunk(w);
    else if constexpr (Kernel::id == kernels::kernel::ternary_batch) share_columns(w);
    else if constexpr (Kernel::id == kernels::kernel::ternary_rows) share_rows(w);
    else share_groups(n, w);
  }

 private:
  /// Gives each workgroup some groups of rows, for the unrolled kernel.
  constexpr void share_rows(const weight& w) {
    const std::uint32_t together = kernels::ternary_rows_together(w.columns);
    k.groups_together = together;
    d_->subgroups = 1;
    d_->groups = {((w.rows + 3) / 4 + together - 1) / together, 1, 1};
  }
  /// Splits the rows among workgroups, as many as have enough work.
  constexpr void share_groups(const node& n, const weight& w) {
    const std::uint32_t row_groups = (w.rows + 3) / 4;
    k.prologue = n.prologue;
    k.eps = n.eps;
    const std::uint32_t tile = c_.tokens == 1                                  ? 1
                               : Kernel::id == kernels::kernel::ternary_matmul ? c_.ternary_tile_tokens()
                                                                               : c_.tile_tokens();
    k.tile_tokens = tile;
    d_->subgroups = c_.target.work.matmul_subgroups;
    // In a chunk the lanes of a workgroup's subgroup, 4 at least, walk all tiles for two groups each, and then each
    // lane reduces up to 32 sums. That takes no more loop iterations than llvmpipe allows.
    const std::uint64_t turns = (std::uint64_t{row_groups} / 8 + 1) * (w.columns / 16 + 48),
                        least = c_.target.work.unrolled ? (turns + 59'999) / 60'000 : 1;
    const std::uint32_t wanted =
        c_.tokens == 1 ? enough_groups(c_.target.work.matmul_groups, w)
                       : (std::max)(c_.target.work.chunk_matmul_groups, static_cast<std::uint32_t>(least));
    d_->groups = {(std::min)(wanted, (row_groups + d_->subgroups - 1) / d_->subgroups), (c_.tokens + tile - 1) / tile,
                  1};
  }

  /// Gives each workgroup one row group, with the number of subgroups (of 32) that leaves none idle longer than the
  /// others.
  constexpr void share_columns(const weight& w) {
    const std::uint32_t tiles = w.columns / 16, most = 32 * c_.target.work.matmul_subgroups,
                        rounds = (tiles + most - 1) / most;
    k.tile_tokens = c_.tile_tokens();
    k.tile_rows = 4u;
    d_->subgroups = (tiles + 32 * rounds - 1) / (32 * rounds);
    d_->groups = {(std::min)(w.rows / 4, 65535u), (c_.tokens + c_.tile_tokens() - 1) / c_.tile_tokens(), 1};
  }

  /// Tiles of 64 tokens with 128 rows, or 64 where there would be too few tiles, with 4 subgroups.
  constexpr void tile_chunk(const weight& w) {
    const std::uint32_t tile_tokens = 64, token_tiles = (c_.tokens + tile_tokens - 1) / tile_tokens;
    const std::uint32_t tile_rows = (w.rows + 127) / 128 * token_tiles >= c_.target.work.chunk_groups ? 128 : 64;
    k.tile_tokens = tile_tokens;
    k.tile_rows = tile_rows;
    k.max_tokens = c_.tokens;
    d_->subgroups = 4;
    d_->groups = {(w.rows + tile_rows - 1) / tile_rows, token_tiles, 1};
  }
};

template <>
struct lowering_of<kernels::ternary_matmul_kernel> : ternary_lowering<kernels::ternary_matmul_kernel> {
  using ternary_lowering::ternary_lowering;
};
template <>
struct lowering_of<kernels::ternary_batch_kernel> : ternary_lowering<kernels::ternary_batch_kernel> {
  using ternary_lowering::ternary_lowering;
};
template <>
struct lowering_of<kernels::ternary_chunk_kernel> : ternary_lowering<kernels::ternary_chunk_kernel> {
  using ternary_lowering::ternary_lowering;
};
template <>
struct lowering_of<kernels::ternary_float_kernel> : ternary_lowering<kernels::ternary_float_kernel> {
  using ternary_lowering::ternary_lowering;
};
template <>
struct lowering_of<kernels::ternary_rows_kernel> : ternary_lowering<kernels::ternary_rows_kernel> {
  using ternary_lowering::ternary_lowering;
};

}  // namespace intaglio::plan
