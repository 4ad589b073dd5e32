// SPDX-License-Identifier: MIT
// The reference of the kernel walk_sum in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_sum_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t count = constant("count"), rows = constant("rows");
    const auto choice =
        constant("listed") != 0 ? memory<std::uint32_t>("choice").first(2 * count) : std::span<std::uint32_t>{};
    reference::walk_sum(memory<float>("input").first(count), choice, weight<std::byte>("weight"),
                        element("weight_element"),
                        constant("epilogue") == static_cast<std::uint32_t>(kernels::epilogue::add),
                        memory<float>("output").first(constant("splits") * rows), constant("splits"));
  }
};

}  // namespace intaglio::reference
