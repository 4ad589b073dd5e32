// SPDX-License-Identifier: MIT
// The reference of the kernel route in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::route_kernel> : kernel_call<kernels::route_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t experts = k.experts, used = k.experts_used;
    if (k.stated == 2) return all(experts);
    if (k.stated != 0) return state(static_cast<std::uint32_t>(experts));
    std::span<const float> logits = memory<float>(at.logits).first(tokens() * experts);
    std::vector<float> sums;
    routing how{.over_all = k.over_all != 0,
                .score = static_cast<expert_score>(k.score),
                .factor = k.factor,
                .added = k.added,
                .least = k.least,
                .groups = k.groups,
                .groups_used = k.groups_used};
    if (k.biased != 0 && how.score != expert_score::logit) how.choosing = weight<float>(at.bias).first(experts);
    else if (k.biased != 0) logits = sums = reference::biased_logits(logits, weight<float>(at.bias).first(experts));
    if (k.scaled != 0) how.scale = weight<float>(at.scale).first(experts);
    for (std::size_t t = 0; t < tokens(); ++t)
      reference::route(logits.subspan(t * experts, experts),
                       memory<std::uint32_t>(at.choice).subspan(t * 2 * used, 2 * used), how);
  }

 private:
  /// Names all experts in order, with parts of 1.
  void all(std::size_t experts) {
    const std::span<std::uint32_t> choice = memory<std::uint32_t>(at.choice);
    for (std::size_t t = 0; t < tokens(); ++t)
      for (std::size_t e = 0; e < experts; ++e) {
        choice[2 * t * experts + e] = static_cast<std::uint32_t>(e);
        choice[(2 * t + 1) * experts + e] = std::bit_cast<std::uint32_t>(1.f);
      }
  }
  /// Reads the choice of adapters from the state; a batch's state has one choice for each slot.
  void state(std::uint32_t experts) {
    const std::span<std::uint32_t> choice = memory<std::uint32_t>(at.choice);
    const std::uint32_t words = k.slot_words;
    for (std::size_t t = 0; t < tokens(); ++t) {
      const std::size_t slot = words == 0 ? 0 : kernels::state::first_slot + t * words;
      choice[2 * t] = (std::min)(m.state[slot + kernels::state::adapter], experts - 1);
      choice[2 * t + 1] = m.state[slot + kernels::state::adapter_scale];
    }
  }
};

}  // namespace intaglio::reference
