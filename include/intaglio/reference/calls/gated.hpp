// SPDX-License-Identifier: MIT
// The reference of the kernel gated in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::gated_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t width = constant("width"), count = tokens() * width, used = constant("experts_used");
    std::span<const float> gate = memory<float>("gate").first(count), up = memory<float>("up");
    std::vector<float> biased_gate, biased_up;
    if (constant("biased") == 2) {
      const auto with = [&](std::span<const float> x, std::string_view name) {
        std::vector<float> out(x.begin(), x.end());
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight<float>(name)[i % width];
        return out;
      };
      gate = biased_gate = with(gate, "gate_bias");
      up = biased_up = with(up.first(count), "up_bias");
    } else if (constant("biased") != 0) {
      const auto choice = memory<std::uint32_t>("choice").first(tokens() * 2 * used);
      gate = biased_gate = reference::biased_experts(gate, choice, used, weight<float>("gate_bias"));
      up = biased_up = reference::biased_experts(up.first(count), choice, used, weight<float>("up_bias"));
    }
    for (std::size_t t = 0; t < tokens(); ++t)
      reference::gated(*d.act(), gate.subspan(t * width, width), up.subspan(t * constant("up_stride"), width),
                       memory<float>("output").subspan(t * width, width), real("scale"));
  }
};

}  // namespace intaglio::reference
