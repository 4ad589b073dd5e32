// SPDX-License-Identifier: MIT
// The reference of the end of a pass: a head in two steps, the sampler, and the kernel that accepts drafts.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/head_screen.hpp"
#include "intaglio/reference/sample.hpp"

namespace intaglio::reference {

/// The logits that a head must compute. @param rows of the head
inline screening screening_wanted(const dispatch_call& head, std::uint32_t rows) {
  const auto& state = head.m.state;
  return screening_of(sampling_of(state), state[kernels::state::position] + state[kernels::state::count], rows,
                      head.d.groups[0]);
}

template <>
struct call_of<kernels::head_screen_kernel> : kernel_call<kernels::head_screen_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = k.columns, rows = k.rows;
    const logit_bounds found =
        reference::head_screen(memory<float>(at.input).first(columns), weight<float>(at.norm_weight),
                               weight<std::int8_t>(at.codes), weight<float>(at.scales), k.eps);
    std::ranges::copy(found.y, memory<float>(at.y).begin());
    if (screening_wanted(*this, k.rows).rank == 0) return;
    std::ranges::copy(found.upper, memory<float>(at.bounds).begin());
    const auto lowest = memory<float>(at.lowest).first(d.groups[0]);
    std::ranges::fill(lowest, -std::numeric_limits<float>::infinity());
    for (std::size_t row = 0; row < rows; ++row)
      lowest[row % lowest.size()] = (std::max)(lowest[row % lowest.size()], found.lower[row]);
  }
};

template <>
struct call_of<kernels::head_rescore_kernel> : kernel_call<kernels::head_rescore_kernel> {
  using kernel_call::kernel_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = k.columns, rows = k.rows;
    const auto bounds = memory<float>(at.bounds).first(rows);
    const auto lowest = memory<float>(at.lowest).first(k.lowest_count);
    const screening s = screening_wanted(*this, k.rows);
    if (s.rank == 0) std::ranges::fill(bounds, std::numeric_limits<float>::infinity());
    const float least = s.rank == 0 ? 0 : least_of_shares(lowest, s.rank) - s.reach;
    reference::head_rescore(memory<float>(at.y).first(columns), weight<std::byte>(at.weight),
                            static_cast<kernels::element>(k.weight_element), least - std::abs(least) * 1e-6f, bounds);
  }
};

template <>
struct call_of<kernels::sample_kernel> : kernel_call<kernels::sample_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t vocabulary = k.vocab_size;
    const std::uint32_t max_tokens = k.max_tokens, context = k.context;
    const auto logits = memory<float>(at.logits);
    if (k.draws == 1)
      return reference::sample(logits.first(vocabulary), max_tokens, context, m.state,
                               std::span(m.ring).first(k.ring_size));
    const auto drawn = memory<std::uint32_t>(at.drawn);
    for (std::uint32_t i = 0; i < (std::min)(k.draws, m.state[kernels::state::count]); ++i)
      drawn[i] = reference::successor(logits.subspan(i * vocabulary, vocabulary), max_tokens, context, m.state, i);
  }
};

template <>
struct call_of<kernels::accept_kernel> : kernel_call<kernels::accept_kernel> {
  using kernel_call::kernel_call;

  void run() {
    m.ring.back() = reference::accept(memory<std::uint32_t>(at.drawn).first(k.draws), k.max_tokens, k.context, m.state,
                                      std::span(m.ring).first(k.ring_size));
  }
};

}  // namespace intaglio::reference
