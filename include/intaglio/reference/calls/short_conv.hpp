// SPDX-License-Identifier: MIT
// The reference of the kernel short_conv in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/recurrent.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::short_conv_kernel> : kernel_call<kernels::short_conv_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const short_conv_shape shape{k.width, k.taps, k.multiplied != 0};
    const std::size_t n = m.state[kernels::state::count], wide = shape.multiplied ? 3 * shape.width : shape.width;
    reference::short_conv(shape, memory<float>(at.input).first(n * wide), weight<float>(at.weight), position(),
                          memory<float>(at.recurrent).first((shape.taps - 1) * shape.width),
                          memory<float>(at.output).first(n * shape.width),
                          k.biased != 0 ? weight<float>(at.bias).first(shape.width) : std::span<const float>{});
  }
};

}  // namespace intaglio::reference
