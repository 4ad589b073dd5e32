// SPDX-License-Identifier: MIT
// The reference of the kernel walk_select in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_select_kernel> : kernel_call<kernels::walk_select_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    reference::walk_select(memory<float>(at.input).first(k.columns),
                           memory<std::uint32_t>(at.choice).first(std::size_t{2} * k.count));
  }
};

}  // namespace intaglio::reference
