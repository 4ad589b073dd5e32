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
    const std::size_t width = constant("width"), groups = d.groups[0];
    for (std::size_t i = 0; i < tokens() * groups; ++i)
      reference::rms_norm(memory<float>("input").subspan(i * width, width),
                          weight<float>("norm_weight").subspan(i % groups * width, width), real("eps"),
                          memory<float>("output").subspan(i * width, width));
  }
};

}  // namespace intaglio::reference
