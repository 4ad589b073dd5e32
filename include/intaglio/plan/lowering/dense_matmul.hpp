// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of one of the kernels for dense weights.
#pragma once

#include <algorithm>

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

/// Products of weights without blocks: for one token, for a small batch, unrolled.
template <class Kernel>
struct dense_lowering : dispatch_builder {
  using constants = typename Kernel::constants;
  static constexpr auto at = kernels::push_ids<Kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    label(n);
    const weight w = matrix(n.weights[0]);
    bind_value(at.input, n.in, false);
    bind_norm_before(at, n);
    bind_weight(at.weight, w);
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.columns = w.columns;
    k.rows = w.rows;
    k.weight_element = w.codec;
    if constexpr (Kernel::id == kernels::kernel::dense_batch) share_rows(w);
    else if constexpr (Kernel::id == kernels::kernel::dense_rows) share_whole_rows(w);
    else share_groups(n, w);
  }

 private:
  constexpr void share_groups(const node& n, const weight& w) {
    k.eps = n.eps;
    d_->subgroups = c_.target.work.head_subgroups;
    d_->groups = {
        (std::min)(enough_groups(c_.target.work.head_groups, w), (w.rows + d_->subgroups - 1) / d_->subgroups),
        c_.tokens, 1};
  }
  /// Gives each subgroup a group of rows. Workgroups are narrow, because the sums take many registers.
  constexpr void share_rows(const weight& w) {
    const std::uint32_t row_groups = (w.rows + kernels::dense_batch_rows - 1) / kernels::dense_batch_rows;
    k.tile_tokens = c_.tile_tokens();
    d_->subgroups = 4;
    d_->groups = {(std::min)((row_groups + d_->subgroups - 1) / d_->subgroups, c_.target.work.head_groups),
                  (c_.tokens + c_.tile_tokens() - 1) / c_.tile_tokens(), 1};
  }

  /// Gives each workgroup a few rows. The workgroups are more than one dimension of the grid allows.
  constexpr void share_whole_rows(const weight& w) {
    const std::uint32_t together = kernels::dense_rows_together(w.columns), groups = (w.rows + together - 1) / together,
                        planes = (groups + 32767) / 32768;
    k.rows_together = together;
    d_->subgroups = 1;
    d_->groups = {(groups + planes - 1) / planes, planes, 1};
  }
};

template <>
struct lowering_of<kernels::dense_matmul_kernel> : dense_lowering<kernels::dense_matmul_kernel> {
  using dense_lowering::dense_lowering;
};
template <>
struct lowering_of<kernels::dense_batch_kernel> : dense_lowering<kernels::dense_batch_kernel> {
  using dense_lowering::dense_lowering;
};
template <>
struct lowering_of<kernels::dense_rows_kernel> : dense_lowering<kernels::dense_rows_kernel> {
  using dense_lowering::dense_lowering;
};

}  // namespace intaglio::plan
