// SPDX-License-Identifier: MIT
// The reference of the kernel head_gate in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/recurrent.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::head_gate_kernel> : kernel_call<kernels::head_gate_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t count = tokens() * std::size_t{k.heads} * k.head_dim;
    reference::head_gate({k.head_dim, k.eps, k.logistic != 0, k.per_head != 0, k.adds != 0},
                         memory<float>(at.input).first(count), memory<float>(at.gate),
                         k.normed != 0 ? weight<float>(at.norm_weight).first(k.head_dim) : std::span<const float>{},
                         memory<float>(at.output).first(count));
  }
};

}  // namespace intaglio::reference
