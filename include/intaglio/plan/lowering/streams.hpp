// SPDX-License-Identifier: MIT
// How a node becomes a dispatch of the kernel streams.
#pragma once

#include "intaglio/plan/dispatch_builder.hpp"

namespace intaglio::plan {

template <>
struct lowering_of<kernels::streams_kernel> : dispatch_builder {
  using constants = kernels::streams_kernel::constants;
  using dispatch_builder::dispatch_builder;
  constants k{};

  constexpr void lower(const node& n) {
    d_->label.append("altup_", ir::name(n.step));
    bind_value("input", n.in, false);
    if (n.up_in != ir::none) bind_value("branch", n.up_in, false);
    if (n.k_in != ir::none) bind_value("target", n.k_in, false);
    if (n.norm != ir::none) bind_norm(n.norm);
    if (n.weight_count == 2) {
      bind_floats("router", n.weights[0]);
      bind_floats("mixing", n.weights[1]);
    }
    bind_value("output", n.out, true);
    bind_state();
    k.streams = n.streams;
    k.width = width(n.step == ir::stream_step::join ? n.k_in : n.in) / n.streams;
    k.step = static_cast<std::uint32_t>(n.step);
    k.stream = n.stream_index;
    k.scale = n.scale;
    k.eps = n.eps;
    d_->subgroups = c_.target.norm_subgroups;
    d_->groups = {1, c_.tokens, 1};
  }

 private:
  /// Binds a row-major matrix of f32.
  constexpr void bind_floats(std::string_view name, ir::weight_id id) {
    weight w = matrix(id);
    w.layout = weight_layout::matrix;
    w.bytes = std::uint64_t{4} * w.rows * w.columns;
    bind_weight(name, w);
  }
};

}  // namespace intaglio::plan
