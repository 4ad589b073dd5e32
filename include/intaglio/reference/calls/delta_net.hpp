// SPDX-License-Identifier: MIT
// The reference of the kernel delta_net in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/recurrent.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::delta_net_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const auto k = kernels::constants_of<kernels::delta_net_kernel>(d.specialization);
    const delta_net_config sizes{k.key_heads, k.value_heads, k.key_dim, k.value_dim, k.in_turn != 0};
    const std::size_t n = m.state[kernels::state::count];
    if (k.state_space != 0)
      return reference::state_space(sizes,
                                    {memory<float>("qkv"), memory<float>("alpha"), weight<float>("decay"),
                                     weight<float>("shift"), weight<float>("skip"), memory<float>("gate")},
                                    position(), memory<float>("recurrent"),
                                    memory<float>("output").first(n * sizes.value_size()));
    reference::delta_net(sizes, {k.gate_stride, k.gate_group}, memory<float>("qkv").first(n * sizes.qkv_size()),
                         memory<float>("beta"), memory<float>("alpha"), weight<float>("decay"), weight<float>("shift"),
                         position(), memory<float>("recurrent"), memory<float>("output").first(n * sizes.value_size()));
  }
};

}  // namespace intaglio::reference
