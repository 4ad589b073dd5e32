// SPDX-License-Identifier: MIT
// The reference of the kernel short_conv in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/recurrent.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::short_conv_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const short_conv_shape shape{constant("width"), constant("taps"), constant("multiplied") != 0};
    const std::size_t n = m.state[kernels::state::count], wide = shape.multiplied ? 3 * shape.width : shape.width;
    reference::short_conv(
        shape, memory<float>("input").first(n * wide), weight<float>("weight"), position(),
        memory<float>("recurrent").first((shape.taps - 1) * shape.width),
        memory<float>("output").first(n * shape.width),
        constant("biased") != 0 ? weight<float>("bias").first(shape.width) : std::span<const float>{});
  }
};

}  // namespace intaglio::reference
