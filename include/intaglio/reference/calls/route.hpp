// SPDX-License-Identifier: MIT
// The reference of the kernel route in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::route_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t experts = constant("experts"), used = constant("experts_used");
    if (constant("stated") == 2) return all(experts);
    if (constant("stated") != 0) return state(static_cast<std::uint32_t>(experts));
    std::span<const float> logits = memory<float>("logits").first(tokens() * experts);
    std::vector<float> sums;
    routing how{.over_all = constant("over_all") != 0,
                .score = static_cast<expert_score>(constant("score")),
                .factor = real("factor"),
                .added = real("added"),
                .least = real("least"),
                .groups = constant("groups"),
                .groups_used = constant("groups_used")};
    if (constant("biased") != 0 && how.score != expert_score::logit)
      how.choosing = weight<float>("bias").first(experts);
    else if (constant("biased") != 0)
      logits = sums = reference::biased_logits(logits, weight<float>("bias").first(experts));
    if (constant("scaled") != 0) how.scale = weight<float>("scale").first(experts);
    for (std::size_t t = 0; t < tokens(); ++t)
      reference::route(logits.subspan(t * experts, experts),
                       memory<std::uint32_t>("choice").subspan(t * 2 * used, 2 * used), how);
  }

 private:
  /// Names all experts in order, with parts of 1.
  void all(std::size_t experts) {
    const std::span<std::uint32_t> choice = memory<std::uint32_t>("choice");
    for (std::size_t t = 0; t < tokens(); ++t)
      for (std::size_t e = 0; e < experts; ++e) {
        choice[2 * t * experts + e] = static_cast<std::uint32_t>(e);
        choice[(2 * t + 1) * experts + e] = std::bit_cast<std::uint32_t>(1.f);
      }
  }
  /// Reads the choice of adapters from the state; a batch's state has one choice for each slot.
  void state(std::uint32_t experts) {
    const std::span<std::uint32_t> choice = memory<std::uint32_t>("choice");
    const std::uint32_t words = constant("slot_words");
    for (std::size_t t = 0; t < tokens(); ++t) {
      const std::size_t slot = words == 0 ? 0 : kernels::state::first_slot + t * words;
      choice[2 * t] = (std::min)(m.state[slot + kernels::state::adapter], experts - 1);
      choice[2 * t + 1] = m.state[slot + kernels::state::adapter_scale];
    }
  }
};

}  // namespace intaglio::reference
