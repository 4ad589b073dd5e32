// SPDX-License-Identifier: MIT
// The reference of the kernel expert_tiles in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::expert_tiles_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::uint32_t used = constant("experts_used"), list_tokens = constant("list_tokens"),
                        n = (std::min)(m.state[kernels::state::count], constant("max_tokens"));
    reference::expert_tiles(memory<std::uint32_t>("choice").first(std::size_t{2} * used * n), used, constant("experts"),
                            list_tokens,
                            memory<std::uint32_t>("output").first(std::size_t{constant("tiles")} * (list_tokens + 2)));
  }
};

}  // namespace intaglio::reference
