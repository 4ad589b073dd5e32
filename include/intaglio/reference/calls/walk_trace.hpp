// SPDX-License-Identifier: MIT
// The reference of the kernel walk_trace in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::walk_trace_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = constant("columns"), features = constant("features"), layers = constant("layers"),
                      words = kernels::trace_words(constant("count"));
    const bool listed = constant("listed") != 0;
    for (std::size_t i = 0; i < layers; ++i) {
      const std::size_t first = i * constant("value_stride");
      const auto part = std::span(m.trace).subspan((position() % constant("slots") * layers + i) * words, words);
      part[0] = position(), part[1] = m.state[kernels::state::tokens];
      reference::walk_trace(memory<float>("values").subspan(first, columns),
                            listed ? std::span<float>{} : memory<float>("gates").subspan(first, columns),
                            listed ? memory<std::uint32_t>("choice").subspan(i * constant("choice_stride"), 2 * columns)
                                   : std::span<std::uint32_t>{},
                            weight<float>("norms").subspan(i * features, features), constant("count"), part);
    }
  }
};

}  // namespace intaglio::reference
