// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel embed.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::embed_kernel> : dispatch_builder {
  using dispatch_builder::dispatch_builder;

  constexpr void lower(const node& n) {
    label(n);
    const weight w = matrix(n.weights[0]);
    bind_weight("table", w);
    d_->weight_bytes = std::uint64_t{c_.tokens} * (w.bytes / w.rows);
    bind_value("output", n.out, true);
    const bool keeps = n.ops[0] == 0;  // the first embedding writes the history
    if (c_.batched()) {
      bind("state", {region::state, 0, 0}, c_.state_bytes(), keeps);
    } else if (!keeps) {
      bind("state", {region::state, 0, 0}, std::uint64_t{4} * kernels::state::history(c_.max_tokens), false);
    } else {
      bind("state", {region::state, 0, 0}, std::uint64_t{4} * kernels::state::history(c_.max_tokens), false);
      note({region::state, 0, std::uint64_t{4} * kernels::state::history(c_.max_tokens)}, std::uint64_t{4} * c_.context,
           true);
    }
    set("width", w.columns);
    set("vocab_size", w.rows);
    set("table_element", w.codec);
    set("scale", n.scale);
    set("max_tokens", c_.token_words());
    set("context", keeps ? c_.context : 0u);
    set("slot_words", c_.slot_words());
    d_->subgroups = c_.target.embed_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }
};

}  // namespace intaglio::plan
