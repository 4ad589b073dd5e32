// SPDX-License-Identifier: MIT
// The reference of the kernel walk_up in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_up_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = constant("columns"), count = constant("count");
    std::vector<float> x(columns);
    reference::rms_norm(memory<float>("input").first(columns), weight<float>("norm_weight"), real("eps"), x);
    reference::walk_up(x, weight<std::byte>("weight"), element("weight_element"), d.act(),
                       memory<std::uint32_t>("choice").first(2 * count), memory<float>("output").first(count));
  }
};

}  // namespace intaglio::reference
