// SPDX-License-Identifier: MIT
// The reference of the kernel walk_trace in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_trace_kernel> : kernel_call<kernels::walk_trace_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = k.columns, features = k.features, layers = k.layers,
                      words = kernels::trace_words(k.count);
    const bool listed = k.listed != 0;
    for (std::size_t i = 0; i < layers; ++i) {
      const std::size_t first = i * k.value_stride;
      const auto part = std::span(m.trace).subspan((position() % k.slot_count * layers + i) * words, words);
      part[0] = position(), part[1] = m.state[kernels::state::tokens];
      reference::walk_trace(memory<float>(at.values).subspan(first, columns),
                            listed ? std::span<float>{} : memory<float>(at.gates).subspan(first, columns),
                            listed ? memory<std::uint32_t>(at.choice).subspan(i * k.choice_stride, 2 * columns)
                                   : std::span<std::uint32_t>{},
                            weight<float>(at.norms).subspan(i * features, features), k.count, part);
    }
  }
};

}  // namespace intaglio::reference
