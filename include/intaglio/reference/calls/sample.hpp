// SPDX-License-Identifier: MIT
// The reference of the end of a pass: a head in two steps, the sampler, and the kernel that accepts drafts.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/head_screen.hpp"
#include "intaglio/reference/sample.hpp"

namespace intaglio::reference {

struct sampling_call : dispatch_call {
  using dispatch_call::dispatch_call;

  screening wanted() const {
    return screening_of(sampling_of(m.state), m.state[kernels::state::position] + m.state[kernels::state::count],
                        constant("rows"), d.groups[0]);
  }
  std::span<std::uint32_t> tokens_of_ring() const { return std::span(m.ring).first(constant("ring_size")); }
};

template <>
struct call_of<kernels::head_screen_kernel> : sampling_call {
  using sampling_call::sampling_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = constant("columns"), rows = constant("rows");
    const logit_bounds found =
        reference::head_screen(memory<float>("input").first(columns), weight<float>("norm_weight"),
                               weight<std::int8_t>("codes"), weight<float>("scales"), real("eps"));
    std::ranges::copy(found.y, memory<float>("y").begin());
    if (wanted().rank == 0) return;
    std::ranges::copy(found.upper, memory<float>("bounds").begin());
    const auto lowest = memory<float>("lowest").first(d.groups[0]);
    std::ranges::fill(lowest, -std::numeric_limits<float>::infinity());
    for (std::size_t row = 0; row < rows; ++row)
      lowest[row % lowest.size()] = (std::max)(lowest[row % lowest.size()], found.lower[row]);
  }
};

template <>
struct call_of<kernels::head_rescore_kernel> : sampling_call {
  using sampling_call::sampling_call;

  void run() {
    if (tokens() == 0) return;
    const std::size_t columns = constant("columns"), rows = constant("rows");
    const auto bounds = memory<float>("bounds").first(rows);
    const auto lowest = memory<float>("lowest").first(constant("lowest_count"));
    const screening s = wanted();
    if (s.rank == 0) std::ranges::fill(bounds, std::numeric_limits<float>::infinity());
    const float least = s.rank == 0 ? 0 : least_of_shares(lowest, s.rank) - s.reach;
    reference::head_rescore(memory<float>("y").first(columns), weight<std::byte>("weight"), element("weight_element"),
                            least - std::abs(least) * 1e-6f, bounds);
  }
};

template <>
struct call_of<kernels::sample_kernel> : sampling_call {
  using sampling_call::sampling_call;

  void run() {
    const std::size_t vocabulary = constant("vocab_size");
    const std::uint32_t max_tokens = constant("max_tokens"), context = constant("context");
    const auto logits = memory<float>("logits");
    if (constant("draws") == 1)
      return reference::sample(logits.first(vocabulary), max_tokens, context, m.state, tokens_of_ring());
    const auto drawn = memory<std::uint32_t>("drawn");
    for (std::uint32_t i = 0; i < (std::min)(constant("draws"), m.state[kernels::state::count]); ++i)
      drawn[i] = reference::successor(logits.subspan(i * vocabulary, vocabulary), max_tokens, context, m.state, i);
  }
};

template <>
struct call_of<kernels::accept_kernel> : sampling_call {
  using sampling_call::sampling_call;

  void run() {
    m.ring.back() = reference::accept(memory<std::uint32_t>("drawn").first(constant("draws")), constant("max_tokens"),
                                      constant("context"), m.state, tokens_of_ring());
  }
};

}  // namespace intaglio::reference
