// SPDX-License-Identifier: MIT
// The reference of an exact walk, the kernels walk_gate_up and walk_down, in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/ternary_walk.hpp"

namespace intaglio::reference {

/// The token's input, quantised to int8. @param walk a call of a kernel of the walk
template <class Call>
factors quantised(const Call& walk, std::vector<std::int8_t>& q) {
  std::vector<factors> factor(1);
  reference::norm_quantize(walk.template memory<float>(walk.at.input).first(q.size()),
                           walk.template weight<float>(walk.at.norm_weight), q.size(), walk.k.eps, q, factor);
  return factor[0];
}

template <>
struct call_of<kernels::walk_gate_up_kernel> : kernel_call<kernels::walk_gate_up_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    std::vector<std::int8_t> q(k.columns);
    const factors factor = quantised(*this, q);
    const auto gates = memory<float>(at.gates);
    reference::walk_gate_up(q, factor, weight<std::uint32_t>(at.weight), weight<std::uint32_t>(at.up),
                            weight<float>(at.scales), memory<float>(at.output).first(k.rows),
                            gates.empty() ? gates : gates.first(k.rows));
    const auto totals =
        reference::walk_totals(memory<float>(at.output).first(k.rows), weight<float>(at.value_norm), d.groups[0]);
    std::ranges::copy(totals, memory<float>(at.totals).begin());
  }
};

template <>
struct call_of<kernels::walk_down_kernel> : kernel_call<kernels::walk_down_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    std::vector<std::int8_t> q(k.columns);
    const factors factor = quantised(*this, q);
    reference::walk_down(q, factor, weight<std::uint32_t>(at.weight), weight<float>(at.scales),
                         memory<float>(at.output).first(k.rows));
    const auto written = memory<float>(at.values);
    for (std::size_t i = 0; !written.empty() && i < q.size(); ++i)
      written[i] = product(static_cast<float>(q[i]), factor.inverse_scale);
  }
};

}  // namespace intaglio::reference
