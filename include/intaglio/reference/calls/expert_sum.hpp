// SPDX-License-Identifier: MIT
// The reference of the kernel expert_sum in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::expert_sum_kernel> : kernel_call<kernels::expert_sum_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t width = k.width, used = k.experts_used, n = tokens();
    const auto choice = memory<std::uint32_t>(at.choice).first(n * 2 * used);
    std::span<const float> input = memory<float>(at.input).first(n * used * width);
    std::vector<float> biased;
    if (k.biased != 0) input = biased = reference::biased_experts(input, choice, used, weight<float>(at.bias));
    const auto output = memory<float>(at.output).first(n * width);
    if (k.stores != 0) std::ranges::fill(output, 0.f);
    reference::expert_sum(input, choice, used, width, output);
  }
};

}  // namespace intaglio::reference
