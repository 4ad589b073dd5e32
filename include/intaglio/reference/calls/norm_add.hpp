// SPDX-License-Identifier: MIT
// The reference of the kernel norm_add in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::norm_add_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t n = std::size_t{tokens()} * d.groups[0] * constant("width");
    std::vector<float> input(memory<float>("input").begin(),
                             memory<float>("input").begin() + static_cast<std::ptrdiff_t>(constant("parts") * n));
    for (std::size_t step = constant("parts") / 2; step != 0; step /= 2)
      for (std::size_t i = 0; i < step * n; ++i) input[i] += input[i + step * n];
    const auto weights = weight<float>("norm_weight").first(constant("width"));
    const auto output = memory<float>("output").first(n);
    if (constant("biased") != 0) reference::bias_add(std::span<const float>(input).first(n), weights, output);
    else
      reference::norm_add(std::span<const float>(input).first(n), weights, real("eps"), output,
                          constant("scaled") != 0 ? weight<float>("norm_weight")[constant("width")] : 1.f);
  }
};

}  // namespace intaglio::reference
