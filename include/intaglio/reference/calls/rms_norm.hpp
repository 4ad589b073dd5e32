// SPDX-License-Identifier: MIT
// The reference of the kernel rms_norm in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/norm_quantize.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::rms_norm_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t width = constant("width");
    for (std::size_t t = 0; t < tokens(); ++t)
      reference::rms_norm(memory<float>("input").subspan(t * width, width), weight<float>("norm_weight").first(width),
                          real("eps"), memory<float>("output").subspan(t * width, width));
  }
};

}  // namespace intaglio::reference
