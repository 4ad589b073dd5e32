// SPDX-License-Identifier: MIT
// The reference of the kernel rms_norm in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/norm_quantize.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::rms_norm_kernel> : kernel_call<kernels::rms_norm_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t width = k.width, groups = d.groups[0];
    for (std::size_t i = 0; i < tokens() * groups; ++i) {
      const auto norm = weight<float>(at.norm_weight).subspan(i % groups * width, width);
      const auto x = memory<float>(at.input).subspan(i * width, width);
      const auto y = memory<float>(at.output).subspan(i * width, width);
      if (const std::uint32_t centered = k.centered; centered != 0)
        reference::layer_norm(x, norm, centered == 1 ? weight<float>(at.bias).first(width) : std::span<const float>{},
                              k.eps, y);
      else reference::rms_norm(x, norm, k.eps, y);
    }
  }
};

}  // namespace intaglio::reference
