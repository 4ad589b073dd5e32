// SPDX-License-Identifier: MIT
// The reference of the kernel gated in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::gated_kernel> : kernel_call<kernels::gated_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t width = k.width, count = tokens() * width, used = k.experts_used;
    std::span<const float> gate = memory<float>(at.gate).first(count), up = memory<float>(at.up);
    std::vector<float> biased_gate, biased_up;
    if (k.biased == 3)
      return reference::gated_by_parameters(*d.act(), gate, weight<float>(at.gate_bias),
                                            memory<float>(at.output).first(count));
    if (k.biased == 2) {
      const auto with = [&](std::span<const float> x, kernels::push_id bias) {
        std::vector<float> out(x.begin(), x.end());
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight<float>(bias)[i % width];
        return out;
      };
      gate = biased_gate = with(gate, at.gate_bias);
      up = biased_up = with(up.first(count), at.up_bias);
    } else if (k.biased != 0) {
      const auto choice = memory<std::uint32_t>(at.choice).first(tokens() * 2 * used);
      gate = biased_gate = reference::biased_experts(gate, choice, used, weight<float>(at.gate_bias));
      up = biased_up = reference::biased_experts(up.first(count), choice, used, weight<float>(at.up_bias));
    }
    for (std::size_t t = 0; t < tokens(); ++t)
      reference::gated(*d.act(), gate.subspan(t * width, width), up.subspan(t * k.up_stride, width),
                       memory<float>(at.output).subspan(t * width, width), k.scale);
  }
};

}  // namespace intaglio::reference
