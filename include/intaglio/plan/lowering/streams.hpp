// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel streams.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::streams_kernel> : dispatch_builder {
  using constants = kernels::streams_kernel::constants;
  static constexpr auto at = kernels::push_ids<kernels::streams_kernel>;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("altup_", ir::name(n.step));
    bind_value(at.input, n.in, false);
    if (n.up_in != ir::none) bind_value(at.branch, n.up_in, false);
    if (n.k_in != ir::none) bind_value(at.target, n.k_in, false);
    if (n.norm != ir::none) bind_norm(at.norm_weight, n.norm);
    if (n.weight_count == 2) {
      bind_floats(at.router, n.weights[0]);
      bind_floats(at.mixing, n.weights[1]);
    }
    bind_value(at.output, n.out, true);
    bind_state(at.state);
    k.streams = n.streams;
    k.width = width(n.step == ir::stream_step::join ? n.k_in : n.in) / n.streams;
    k.step = static_cast<std::uint32_t>(n.step);
    k.stream = n.stream_index;
    k.scale = n.scale;
    k.eps = n.eps;
    d_->subgroups = c_.target.work.norm_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }

 private:
  /// Binds a row-major matrix of f32.
  constexpr void bind_floats(kernels::push_id to, ir::weight_id id) {
    weight w = matrix(id);
    w.layout = weight_layout::matrix;
    w.bytes = std::uint64_t{4} * w.rows * w.columns;
    bind_weight(to, w);
  }
};

}  // namespace intaglio::plan
