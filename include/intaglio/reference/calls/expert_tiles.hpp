// SPDX-License-Identifier: MIT
// The reference of the kernel expert_tiles in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::expert_tiles_kernel> : kernel_call<kernels::expert_tiles_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::uint32_t used = k.experts_used, list_tokens = k.list_tokens,
                        n = (std::min)(m.state[kernels::state::count], k.max_tokens);
    reference::expert_tiles(memory<std::uint32_t>(at.choice).first(std::size_t{2} * used * n), used, k.experts,
                            list_tokens,
                            memory<std::uint32_t>(at.output).first(std::size_t{k.tiles} * (list_tokens + 2)));
  }
};

}  // namespace intaglio::reference
