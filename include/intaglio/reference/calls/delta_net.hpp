// SPDX-License-Identifier: MIT
// The reference of the kernel delta_net in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/recurrent.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::delta_net_kernel> : kernel_call<kernels::delta_net_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const delta_net_config sizes{k.key_heads, k.value_heads, k.key_dim, k.value_dim, k.in_turn != 0};
    const std::size_t n = m.state[kernels::state::count];
    if (k.state_space != 0)
      return reference::state_space(sizes,
                                    {memory<float>(at.qkv), memory<float>(at.alpha), weight<float>(at.decay),
                                     weight<float>(at.shift), weight<float>(at.skip), memory<float>(at.gate)},
                                    position(), memory<float>(at.recurrent),
                                    memory<float>(at.output).first(n * sizes.value_size()));
    reference::delta_net(sizes, {k.gate_stride, k.gate_group}, memory<float>(at.qkv).first(n * sizes.qkv_size()),
                         memory<float>(at.beta), memory<float>(at.alpha), weight<float>(at.decay),
                         weight<float>(at.shift), position(), memory<float>(at.recurrent),
                         memory<float>(at.output).first(n * sizes.value_size()));
  }
};

}  // namespace intaglio::reference
