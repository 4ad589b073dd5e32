// SPDX-License-Identifier: MIT
// The reference of the kernel walk_up in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_up_kernel> : kernel_call<kernels::walk_up_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = k.columns, count = k.count;
    std::vector<float> x(columns);
    reference::rms_norm(memory<float>(at.input).first(columns), weight<float>(at.norm_weight), k.eps, x);
    reference::walk_up(x, weight<std::byte>(at.weight), static_cast<kernels::element>(k.weight_element), d.act(),
                       memory<std::uint32_t>(at.choice).first(2 * count), memory<float>(at.output).first(count));
  }
};

}  // namespace intaglio::reference
