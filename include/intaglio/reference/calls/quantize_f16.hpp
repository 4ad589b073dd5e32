// SPDX-License-Identifier: MIT
// The reference of the kernel quantize_f16 in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/matmul_chunk.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::quantize_f16_kernel> : kernel_call<kernels::quantize_f16_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t width = k.width, used = k.experts_used;
    const std::uint32_t list_tokens = k.list_tokens;
    const std::size_t n = m.state[kernels::state::count];
    const auto put = [&](std::size_t row, std::span<const float> x) {
      const f16_token made = reference::quantize_f16(x);
      std::ranges::copy(made.bits, memory<std::uint16_t>(at.output).subspan(row * width).begin());
      memory<float>(at.factors)[row] = made.factor;
    };
    if (used == 0) {
      const auto y = input_after_norm(tokens(), width);
      for (std::size_t t = 0; t < tokens(); ++t) put(t, std::span(y).subspan(t * width, width));
      return;
    }
    const bool own_input = k.own_input != 0;
    const auto y = input_after_norm(own_input ? n * used : n, width);
    const std::size_t lists = d.groups[1] / list_tokens;
    const auto tiles = memory<std::uint32_t>(at.tiles).first(lists * (list_tokens + 2));
    for (std::size_t list = 0; list < lists; ++list)
      for (std::size_t i = 0; i < tiles[list * (list_tokens + 2) + 1]; ++i) {
        const std::size_t pair = tiles[list * (list_tokens + 2) + 2 + i];
        put(list * list_tokens + i, std::span(y).subspan((own_input ? pair : pair / used) * width, width));
      }
  }
};

}  // namespace intaglio::reference
