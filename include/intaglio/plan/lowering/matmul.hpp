// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of one of the kernels for coded weights.
#pragma once

#include <algorithm>

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// Products of f32 by coded weights: for one token, for a small batch, for a chunk in f16.
template <class Kernel>
struct coded_lowering : dispatch_builder {
  using constants = typename Kernel::constants;
  static constexpr auto at = kernels::push_ids<Kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  /// Lowers a product of f32 by coded weights.
  constexpr void lower(const node& n) {
    label(n);
    weight w = n.weight_count == 1 ? matrix(n.weights[0]) : stacked(n, weight_layout::row_groups);
    w.codec = *codec_of(tensor(n.weights[0]).type);
    if (w.layout == weight_layout::row_groups || w.rows % 4 != 0) {
      w.layout = weight_layout::row_groups;
      w.bytes = kernels::matmul_weight_bytes(w.codec, w.rows, w.columns);
    }
    if constexpr (is_chunk)
      bind_f16(at.input, at.factors, n.in, w.columns, n.list_tokens == 0 ? c_.tokens : lists(n) * n.list_tokens, false);
    else bind_value(at.input, n.in, false);
    bind_norm_before(at, n);
    bind_weight(at.weight, w);
    bind_value(at.output, n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state(at.state);
    if (n.epilogue == kernels::epilogue::rope_cache) {
      bind_cache(at, k, n, true);
      bind_rope(at.rope, n);
      k.head_dim = n.head_dim;
      k.q_size = w.source_rows[0];
      k.kv_size = w.source_rows[1];
    }
    const std::uint32_t rows = n.experts == 0 ? w.rows : w.rows / n.experts, outputs = n.experts == 0 ? 1 : n.top_k;
    if (n.experts != 0) bind_experts(n, w);
    k.columns = w.columns;
    k.rows = rows;
    k.codec = w.codec;
    k.epilogue = n.epilogue;
    if (n.epilogue == kernels::epilogue::gated) d_->activation = &*n.act;
    if constexpr (requires { at.gates; })
      if (n.gates != ir::none) bind_value(at.gates, n.gates, true);
    if constexpr (is_chunk) n.experts != 0 ? tile_lists(n, rows) : tile_f16(w);
    else if constexpr (is_small_batch) share_tokens(n, rows);
    else share_groups(n, w, rows, outputs);
  }

 private:
  static constexpr bool is_chunk = Kernel::id == kernels::kernel::matmul_chunk,
                        is_small_batch = Kernel::id == kernels::kernel::matmul_batch;

  /// Subgroups of matmul_batch that an H200 runs at once.
  static constexpr std::uint32_t busy_subgroups = 2112;

  /// Bytes of 32 KiB of shared memory that remain beside a norm's prologue.
  static constexpr std::uint64_t most_staged_bytes = 24576;
  /// Binds the experts of each token, or the lists of each expert's tokens.
  constexpr void bind_experts(const node& n, const weight& w) {
    const operand lists_of{region::arena, 0, placement_.offset(n.choice)};
    if constexpr (is_small_batch || is_chunk) bind(at.tiles, lists_of, list_bytes(n), false);
    else if (n.list_tokens != 0) bind(at.choice, lists_of, list_bytes(n), false);
    else bind_value(at.choice, n.choice, false);
    k.experts_used = n.top_k;
    if constexpr (!is_chunk)
      k.own_input =
          width(n.in) == (is_small_batch ? kernels::fixed_words(w.columns) : w.columns) && n.top_k != 1 ? 0u : 1u;
    if constexpr (is_small_batch || is_chunk) k.list_tokens = n.list_tokens;
    d_->weight_bytes -= w.bytes - w.bytes / n.experts * (std::min)(n.experts, c_.tokens * n.top_k);
  }
  /// Splits the rows among workgroups.
  constexpr void share_groups(const node& n, const weight& w, std::uint32_t rows, std::uint32_t outputs) {
    k.prologue = n.prologue;
    k.eps = n.eps;
    const std::uint32_t tile = c_.tokens == 1 || (n.experts != 0 && n.list_tokens == 0) ? 1
                               : n.list_tokens != 0                                     ? n.list_tokens
                                                                                        : c_.tile_tokens();
    k.tile_tokens = tile;
    // Staging more than every device can hold pays off where a device can: a down projection of 7B takes 46 KiB.
    k.staged = kernels::matmul_staged_bytes(w.codec, w.columns, tile) <= most_staged_bytes ? 1u
               : c_.tokens == 1 && c_.target.work.matmul_subgroups > 1                     ? kernels::staged_where_room
                                                                                           : 0u;
    const std::uint32_t row_groups = (rows + 3) / 4;
    d_->subgroups = c_.target.work.matmul_subgroups;
    if (c_.tokens == 1 && d_->subgroups > 1 &&
        !kernels::is_dense(w.codec)) {  // on GPUs each workgroup prepares x, so fewer and wider ones are faster
      d_->subgroups *= 2;
      // Subgroups without rows help to prepare x. Several products fill the device together: each has enough workgroups
      // for that, and a subgroup for each group of rows.
      const std::uint32_t most = outputs == 1
                                     ? row_groups
                                     : (std::max)((row_groups + d_->subgroups - 1) / d_->subgroups,
                                                  (std::min)(row_groups, c_.target.work.matmul_groups / outputs));
      d_->groups = {(std::min)((c_.target.work.matmul_groups + 1) / 2, most), outputs, 1};
      return;
    }
    const std::uint32_t wanted =
        c_.tokens == 1 ? enough_groups(c_.target.work.matmul_groups, w) : c_.target.work.chunk_matmul_groups;
    d_->groups = {(std::min)(wanted, (row_groups + d_->subgroups - 1) / d_->subgroups),
                  n.list_tokens != 0 ? lists(n) : (c_.tokens + tile - 1) / tile * outputs, 1};
  }

  /// Gives each subgroup a group of rows for a tile of tokens. Tiles are smaller where there would not be enough
  /// subgroups to keep the device busy.
  constexpr void share_tokens(const node& n, std::uint32_t rows) {
    std::uint32_t tile = c_.tile_tokens();
    const std::uint32_t all = n.list_tokens != 0 ? c_.tokens * n.top_k : c_.tokens;
    while (tile % 4 == 0 && rows / 4 * (all / tile) < busy_subgroups) tile /= 2;
    k.tile_tokens = tile;
    d_->subgroups = 4;
    k.tile_rows = 4 * d_->subgroups;
    d_->groups = {(std::min)((rows / 4 + d_->subgroups - 1) / d_->subgroups, 65535u),
                  n.list_tokens != 0 ? lists(n) * (n.list_tokens / tile) : (c_.tokens + tile - 1) / tile, 1};
  }

  /// Tiles of 128 rows and 128 tokens with 4 subgroups, or with 8 where there are fewer than two tiles for each
  /// processor. In a batch on devices without matrices (others use batch_chunk_tile) an invocation has four rows and
  /// four tokens.
  constexpr void tile_f16(const weight& w) {
    const bool small_batch = c_.batched();
    const std::uint32_t tile_rows = small_batch ? 64 : 128,
                        tile_tokens = small_batch       ? kernels::batch_chunk_tile(w.rows, c_.tokens).tokens
                                      : c_.tokens < 128 ? 64
                                                        : 128;
    d_->groups = {(c_.tokens + tile_tokens - 1) / tile_tokens, (w.rows + tile_rows - 1) / tile_rows, 1};
    d_->subgroups = small_batch ? tile_tokens / 8
                    : tile_tokens == 128 && 2 * d_->groups[0] * d_->groups[1] <= c_.target.work.chunk_groups ? 8
                                                                                                             : 4;
    k.tile_tokens = tile_tokens;
    k.tile_rows = tile_rows;
    k.max_tokens = c_.tokens;
    if (c_.tokens > kernels::most_batch_tokens) k.slot_words = c_.slot_words();
  }

  /// Tiles of 128 rows and the tokens of one list.
  constexpr void tile_lists(const node& n, std::uint32_t rows) {
    d_->groups = {lists(n), (rows + 127) / 128, 1};
    d_->subgroups = 4;
    k.tile_tokens = n.list_tokens;
    k.tile_rows = 128u;
    k.max_tokens = lists(n) * n.list_tokens;
  }
};

template <>
struct lowering_of<kernels::matmul_kernel> : coded_lowering<kernels::matmul_kernel> {
  using coded_lowering::coded_lowering;
};
template <>
struct lowering_of<kernels::matmul_batch_kernel> : coded_lowering<kernels::matmul_batch_kernel> {
  using coded_lowering::coded_lowering;
};
template <>
struct lowering_of<kernels::matmul_chunk_kernel> : coded_lowering<kernels::matmul_chunk_kernel> {
  using coded_lowering::coded_lowering;
};

}  // namespace intaglio::plan
