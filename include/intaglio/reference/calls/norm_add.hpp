// SPDX-License-Identifier: MIT
// The reference of the kernel norm_add in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::norm_add_kernel> : kernel_call<kernels::norm_add_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t n = std::size_t{tokens()} * d.groups[0] * k.width;
    std::vector<float> input(memory<float>(at.input).begin(),
                             memory<float>(at.input).begin() + static_cast<std::ptrdiff_t>(k.parts * n));
    for (std::size_t step = k.parts / 2; step != 0; step /= 2)
      for (std::size_t i = 0; i < step * n; ++i) input[i] += input[i + step * n];
    const auto weights = weight<float>(at.norm_weight).first(k.width);
    const auto output = memory<float>(at.output).first(n);
    if (k.biased != 0) reference::bias_add(std::span<const float>(input).first(n), weights, output);
    else
      reference::norm_add(std::span<const float>(input).first(n), weights, k.eps, output,
                          k.scaled != 0 ? weight<float>(at.norm_weight)[k.width] : 1.f);
  }
};

}  // namespace intaglio::reference
