// SPDX-License-Identifier: MIT
// The reference of the kernel fixed in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::fixed_kernel> : kernel_call<kernels::fixed_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::uint32_t width = k.width, words = kernels::fixed_words(width);
    const std::size_t rows =
        std::size_t{(std::min)(m.state[kernels::state::count], d.groups[1] / k.rows_per_token)} * k.rows_per_token;
    const auto y = input_after_norm(rows, width);
    for (std::size_t row = 0; row < rows; ++row)
      std::ranges::copy(fixed_words(std::span(y).subspan(row * width, width)),
                        memory<std::uint32_t>(at.output).subspan(row * words).begin());
  }
};

}  // namespace intaglio::reference
