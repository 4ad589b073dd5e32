// SPDX-License-Identifier: MIT
// How a node becomes a product of coded weights, of whichever form.
#pragma once

#include <algorithm>

#include "intaglio/kernels/few_tile.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// Products of f32 by weights of a codec: for one token, for a few, for a chunk in halves.
struct coded_lowering : dispatch_builder {
  using dispatch_builder::dispatch_builder;

  /// Products of f32 by weights of a codec.
  constexpr void lower(const node& n) {
    label(n);
    weight w = n.weight_count == 1 ? matrix(n.weights[0]) : stacked(n, weight_layout::row_groups);
    w.codec = *codec_of(tensor(n.weights[0]).type);
    if (w.layout == weight_layout::row_groups || w.rows % 4 != 0) {
      w.layout = weight_layout::row_groups;
      w.bytes = kernels::matmul_weight_bytes(w.codec, w.rows, w.columns);
    }
    const bool chunk = d_->kernel == kernels::kernel::matmul_chunk;
    if (chunk) bind_halves("input", n.in, w.columns, n.list_tokens == 0 ? c_.tokens : lists(n) * n.list_tokens, false);
    else bind_value("input", n.in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    bind_weight("weight", w);
    bind_value("output", n.out, true);
    if (n.stream != ir::none)
      note({region::arena, 0, placement_.offset(n.stream)},
           value_bytes(graph_.values[static_cast<std::size_t>(n.stream)], c_.tokens), false);
    bind_state();
    if (n.epilogue == kernels::epilogue::rope_cache) {
      bind_cache(n, true);
      bind_rope(n);
      set("head_dim", n.head_dim);
      set("q_size", w.source_rows[0]);
      set("kv_size", w.source_rows[1]);
    }
    const std::uint32_t rows = n.experts == 0 ? w.rows : w.rows / n.experts, outputs = n.experts == 0 ? 1 : n.top_k;
    if (n.experts != 0) bind_experts(n, w, chunk);
    set("columns", w.columns);
    set("rows", rows);
    set("codec", w.codec);
    set("epilogue", n.epilogue);
    if (n.epilogue == kernels::epilogue::gated) d_->activation = &*n.act;
    if (n.gates != ir::none) bind_value("gates", n.gates, true);
    if (chunk && n.experts != 0) return tile_lists(n, rows);
    if (chunk) return tile_halves(w);
    if (d_->kernel == kernels::kernel::matmul_few) return share_tokens(n, rows);
    set("prologue", n.prologue);
    set("eps", n.eps);
    const std::uint32_t tile = c_.tokens == 1 || (n.experts != 0 && n.list_tokens == 0) ? 1
                               : n.list_tokens != 0                                     ? n.list_tokens
                                                                                        : c_.tile_tokens();
    set("tile_tokens", tile);
    // What other devices have no room for is worth it where one has: a down projection of 7B takes 46 KiB.
    set("staged", kernels::matmul_staged_bytes(w.codec, w.columns, tile) <= most_staged_bytes ? 1u
                  : c_.tokens == 1 && c_.target.matmul_subgroups > 1 ? kernels::staged_where_room
                                                                     : 0u);
    share_groups(n, w, rows, outputs, tile);
  }

 private:
  /// Subgroups of matmul_few that an H200 runs at once.
  static constexpr std::uint32_t busy_subgroups = 2112;

  /// Of 32 KiB of shared memory, what a norm in front leaves of it.
  static constexpr std::uint64_t most_staged_bytes = 24576;
  /// Which experts a token has, or which tokens an expert.
  constexpr void bind_experts(const node& n, const weight& w, bool chunk) {
    const bool few = d_->kernel == kernels::kernel::matmul_few;
    if (n.list_tokens != 0)
      bind(few || chunk ? "tiles" : "choice", {region::arena, 0, placement_.offset(n.choice)}, list_bytes(n), false);
    else bind_value("choice", n.choice, false);
    set("experts_used", n.top_k);
    if (!chunk)
      set("own_input", width(n.in) == (few ? kernels::fixed_words(w.columns) : w.columns) && n.top_k != 1 ? 0u : 1u);
    if (few || chunk) set("list_tokens", n.list_tokens);
    d_->weight_bytes -= w.bytes - w.bytes / n.experts * (std::min)(n.experts, c_.tokens * n.top_k);
  }
  /// Workgroups of rows.
  constexpr void share_groups(const node& n, const weight& w, std::uint32_t rows, std::uint32_t outputs,
                              std::uint32_t tile) {
    const std::uint32_t row_groups = (rows + 3) / 4;
    d_->subgroups = c_.target.matmul_subgroups;
    if (c_.tokens == 1 && d_->subgroups > 1 &&
        !kernels::is_dense(w.codec)) {  // on GPUs: a workgroup prepares x, so fewer and wider ones do so sooner
      d_->subgroups *= 2;
      // Subgroups without rows help to prepare x. Several products fill the device together: each has workgroups
      // enough for that, and for a group of rows a subgroup.
      const std::uint32_t most =
          outputs == 1 ? row_groups
                       : (std::max)((row_groups + d_->subgroups - 1) / d_->subgroups,
                                    (std::min)(row_groups, (c_.target.matmul_groups + outputs - 1) / outputs));
      d_->groups = {(std::min)((c_.target.matmul_groups + 1) / 2, most), outputs, 1};
      return;
    }
    const std::uint32_t wanted =
        c_.tokens == 1 ? enough_groups(c_.target.matmul_groups, w) : c_.target.chunk_matmul_groups;
    d_->groups = {(std::min)(wanted, (row_groups + d_->subgroups - 1) / d_->subgroups),
                  n.list_tokens != 0 ? lists(n) : (c_.tokens + tile - 1) / tile * outputs, 1};
  }

  /// A subgroup a group of rows, which it has for a tile of tokens: fewer of them where there would not be enough
  /// subgroups to keep the device busy.
  constexpr void share_tokens(const node& n, std::uint32_t rows) {
    std::uint32_t tile = c_.tile_tokens();
    const std::uint32_t all = n.list_tokens != 0 ? c_.tokens * n.top_k : c_.tokens;
    while (tile % 4 == 0 && rows / 4 * (all / tile) < busy_subgroups) tile /= 2;
    set("tile_tokens", tile);
    d_->subgroups = 4;
    set("tile_rows", 4 * d_->subgroups);
    d_->groups = {(std::min)((rows / 4 + d_->subgroups - 1) / d_->subgroups, 65535u),
                  n.list_tokens != 0 ? lists(n) * (n.list_tokens / tile) : (c_.tokens + tile - 1) / tile, 1};
  }

  /// Tiles of 128 rows and 128 tokens for 4 subgroups, or for 8 where there are not two tiles for each processor. Of a
  /// batch, for devices without matrices (others have few_chunk_tile), an invocation has four rows and four tokens.
  constexpr void tile_halves(const weight& w) {
    const bool few = c_.batched();
    const std::uint32_t tile_rows = few ? 64 : 128,
                        tile_tokens = few               ? kernels::few_chunk_tile(w.rows, c_.tokens).tokens
                                      : c_.tokens < 128 ? 64
                                                        : 128;
    d_->groups = {(c_.tokens + tile_tokens - 1) / tile_tokens, (w.rows + tile_rows - 1) / tile_rows, 1};
    d_->subgroups = few ? tile_tokens / 8
                    : tile_tokens == 128 && 2 * d_->groups[0] * d_->groups[1] <= c_.target.chunk_groups ? 8
                                                                                                        : 4;
    set("tile_tokens", tile_tokens);
    set("tile_rows", tile_rows);
    set("max_tokens", c_.tokens);
  }

  /// Tiles of 128 rows and of as many tokens as a list has.
  constexpr void tile_lists(const node& n, std::uint32_t rows) {
    d_->groups = {lists(n), (rows + 127) / 128, 1};
    d_->subgroups = 4;
    set("tile_tokens", n.list_tokens);
    set("tile_rows", 128u);
    set("max_tokens", lists(n) * n.list_tokens);
  }
};

template <>
struct lowering_of<kernels::matmul_kernel> : coded_lowering {
  using coded_lowering::coded_lowering;
};
template <>
struct lowering_of<kernels::matmul_few_kernel> : coded_lowering {
  using coded_lowering::coded_lowering;
};
template <>
struct lowering_of<kernels::matmul_chunk_kernel> : coded_lowering {
  using coded_lowering::coded_lowering;
};

}  // namespace intaglio::plan
