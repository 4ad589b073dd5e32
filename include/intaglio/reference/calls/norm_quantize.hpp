// SPDX-License-Identifier: MIT
// The reference of the kernel norm_quantize in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/norm_quantize.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::norm_quantize_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t width = constant("width"), n = tokens();
    reference::norm_quantize(memory<float>("input").first(n * width), norm_of(width), width, real("eps"),
                             memory<std::int8_t>("output").first(n * width), memory<factors>("factors").first(n));
  }
};

}  // namespace intaglio::reference
