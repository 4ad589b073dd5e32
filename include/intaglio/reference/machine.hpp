// SPDX-License-Identifier: MIT
// Runs a plan's table on the CPU, dispatch by dispatch, with every buffer open to the caller: the oracle of kernels,
// fusions and plans. It is not fast. Buffers are as on the device, byte for byte (plan/table.hpp).
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "intaglio/core/array_view.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/reference/calls/attention.hpp"
#include "intaglio/reference/calls/delta_net.hpp"
#include "intaglio/reference/calls/dense_matmul.hpp"
#include "intaglio/reference/calls/embed.hpp"
#include "intaglio/reference/calls/expert_sum.hpp"
#include "intaglio/reference/calls/expert_tiles.hpp"
#include "intaglio/reference/calls/fixed.hpp"
#include "intaglio/reference/calls/gated.hpp"
#include "intaglio/reference/calls/head_gate.hpp"
#include "intaglio/reference/calls/matmul.hpp"
#include "intaglio/reference/calls/norm_add.hpp"
#include "intaglio/reference/calls/norm_quantize.hpp"
#include "intaglio/reference/calls/quantize_f16.hpp"
#include "intaglio/reference/calls/rms_norm.hpp"
#include "intaglio/reference/calls/route.hpp"
#include "intaglio/reference/calls/sample.hpp"
#include "intaglio/reference/calls/short_conv.hpp"
#include "intaglio/reference/calls/streams.hpp"
#include "intaglio/reference/calls/ternary_matmul.hpp"
#include "intaglio/reference/calls/ternary_walk.hpp"
#include "intaglio/reference/calls/turn.hpp"
#include "intaglio/reference/calls/walk_select.hpp"
#include "intaglio/reference/calls/walk_sum.hpp"
#include "intaglio/reference/calls/walk_trace.hpp"
#include "intaglio/reference/calls/walk_up.hpp"
#include "intaglio/reference/device_memory.hpp"
#include "intaglio/reference/dispatch_call.hpp"

namespace intaglio::reference {

/// A kernel for a batch of sessions: its reference is a run of each session by itself.
template <>
struct call_of<kernels::pages_kernel> : has_no_call {};

/// Runs the dispatches of a plan on the CPU, one at a time.
class machine : public device_memory {
 public:
  using device_memory::device_memory;

  /// Runs all dispatches of a sequence in order; `after(dispatch, layer)` sees the buffers after each.
  void run(const plan::sequence& s, const std::function<void(const plan::dispatch&, std::uint32_t)>& after = {}) {
    auto part = [&](array_view<const plan::dispatch> dispatches, std::uint32_t layer) {
      for (const auto& d : dispatches) {
        step(d, layer);
        if (after) after(d, layer);
      }
    };
    part(s.prologue, 0);
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) part(s.block(s.pattern(layer)), layer);
    part(s.epilogue, 0);
  }

  void step(const plan::dispatch& d, std::uint32_t layer) {
    kernels::visit(d.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
      if constexpr (has_call<Kernel>) call_of<Kernel>{*this, d, layer}.run();
    });
  }
};

}  // namespace intaglio::reference
