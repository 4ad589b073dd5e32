// SPDX-License-Identifier: MIT
// The reference of an exact walk, the kernels walk_gate_up and walk_down, in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/ternary_walk.hpp"

namespace intaglio::reference {

struct walk_call : dispatch_call {
  using dispatch_call::dispatch_call;

  /// The token's input, quantised to int8.
  factors quantised(std::vector<std::int8_t>& q) const {
    std::vector<factors> factor(1);
    reference::norm_quantize(memory<float>("input").first(q.size()), weight<float>("norm_weight"), q.size(),
                             real("eps"), q, factor);
    return factor[0];
  }
};

template <>
struct call_of<kernels::walk_gate_up_kernel> : walk_call {
  using walk_call::walk_call;

  void run() {
    if (tokens() == 0) return;
    std::vector<std::int8_t> q(constant("columns"));
    const factors factor = quantised(q);
    const auto gates = memory<float>("gates");
    reference::walk_gate_up(q, factor, weight<std::uint32_t>("weight"), weight<std::uint32_t>("up"),
                            weight<float>("scales"), memory<float>("output").first(constant("rows")),
                            gates.empty() ? gates : gates.first(constant("rows")));
    const auto totals = reference::walk_totals(memory<float>("output").first(constant("rows")),
                                               weight<float>("value_norm"), d.groups[0]);
    std::ranges::copy(totals, memory<float>("totals").begin());
  }
};

template <>
struct call_of<kernels::walk_down_kernel> : walk_call {
  using walk_call::walk_call;

  void run() {
    if (tokens() == 0) return;
    std::vector<std::int8_t> q(constant("columns"));
    const factors factor = quantised(q);
    reference::walk_down(q, factor, weight<std::uint32_t>("weight"), weight<float>("scales"),
                         memory<float>("output").first(constant("rows")));
    const auto written = memory<float>("values");
    for (std::size_t i = 0; !written.empty() && i < q.size(); ++i)
      written[i] = product(static_cast<float>(q[i]), factor.inverse_scale);
  }
};

}  // namespace intaglio::reference
