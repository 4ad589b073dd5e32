// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel embed.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::embed_kernel> : dispatch_builder {
  using constants = kernels::embed_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::embed_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    label(n);
    const weight w = matrix(n.weights[0]);
    bind_weight(at.table, w);
    d_->weight_bytes = std::uint64_t{c_.tokens} * (w.bytes / w.rows);
    k.positions = bind_rows(at.position_table, n.biases[0]);
    k.kinds = bind_rows(at.kind_table, n.biases[1]);
    bind_value(at.output, n.out, true);
    const bool keeps = n.ops[0] == 0;  // the first embedding writes the history
    if (c_.batched()) {
      bind(at.state, {region::state, 0, 0}, c_.state_bytes(), keeps);
    } else if (!keeps) {
      bind(at.state, {region::state, 0, 0}, std::uint64_t{4} * kernels::state::history(c_.max_tokens), false);
    } else {
      bind(at.state, {region::state, 0, 0}, std::uint64_t{4} * kernels::state::history(c_.max_tokens), false);
      note({region::state, 0, std::uint64_t{4} * kernels::state::history(c_.max_tokens)}, std::uint64_t{4} * c_.context,
           true);
    }
    k.width = w.columns;
    k.vocab_size = w.rows;
    k.table_element = w.codec;
    k.scale = n.scale;
    k.max_tokens = c_.token_words();
    k.context = keeps ? c_.context : 0u;
    k.slot_words = c_.slot_words();
    d_->subgroups = c_.target.work.embed_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }

 private:
  /// Binds a table of f32 whose rows are added. @return its number of rows; 0: there is no table
  constexpr std::uint32_t bind_rows(kernels::push_id to, ir::weight_id id) {
    if (id == ir::none) return 0;
    weight rows = matrix(id);
    rows.layout = weight_layout::matrix;
    rows.bytes = std::uint64_t{4} * rows.rows * rows.columns;
    bind_weight(to, rows);
    return rows.rows;
  }
};

}  // namespace intaglio::plan
