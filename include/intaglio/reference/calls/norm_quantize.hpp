// SPDX-License-Identifier: MIT
// The reference of the kernel norm_quantize in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/norm_quantize.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::norm_quantize_kernel> : kernel_call<kernels::norm_quantize_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t width = k.width, n = tokens();
    reference::norm_quantize(memory<float>(at.input).first(n * width), norm_of(width), width, k.eps,
                             memory<std::int8_t>(at.output).first(n * width), memory<factors>(at.factors).first(n));
  }
};

}  // namespace intaglio::reference
