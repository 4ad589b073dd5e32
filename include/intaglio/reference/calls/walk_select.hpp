// SPDX-License-Identifier: MIT
// The reference of the kernel walk_select in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_select_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    if (tokens() == 0) return;
    reference::walk_select(memory<float>("input").first(constant("columns")),
                           memory<std::uint32_t>("choice").first(std::size_t{2} * constant("count")));
  }
};

}  // namespace intaglio::reference
