// SPDX-License-Identifier: MIT
// The reference of the kernel walk_sum in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_sum_kernel> : kernel_call<kernels::walk_sum_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t count = k.count, rows = k.rows;
    const auto choice = k.listed != 0 ? memory<std::uint32_t>(at.choice).first(2 * count) : std::span<std::uint32_t>{};
    reference::walk_sum(memory<float>(at.input).first(count), choice, weight<std::byte>(at.weight),
                        static_cast<kernels::element>(k.weight_element), k.epilogue == kernels::epilogue::add,
                        memory<float>(at.output).first(k.splits * rows), k.splits);
  }
};

}  // namespace intaglio::reference
