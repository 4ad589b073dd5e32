// SPDX-License-Identifier: MIT
// The reference of the kernel expert_sum in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::expert_sum_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t width = constant("width"), used = constant("experts_used"), n = tokens();
    const auto choice = memory<std::uint32_t>("choice").first(n * 2 * used);
    std::span<const float> input = memory<float>("input").first(n * used * width);
    std::vector<float> biased;
    if (constant("biased") != 0) input = biased = reference::biased_experts(input, choice, used, weight<float>("bias"));
    const auto output = memory<float>("output").first(n * width);
    if (constant("stores") != 0) std::ranges::fill(output, 0.f);
    reference::expert_sum(input, choice, used, width, output);
  }
};

}  // namespace intaglio::reference
