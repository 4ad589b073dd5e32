// SPDX-License-Identifier: MIT
// Offsets in the arena for results that the workgroups of attention, and the two kernels of a walk, exchange.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "intaglio/plan/place.hpp"
#include "intaglio/plan/walk_shape.hpp"

namespace intaglio::plan {

/// Reserves arena memory in which each attention's workgroups exchange partial results.
constexpr void place_partials(const std::vector<node>& nodes, const lowering_context& c, placement& p) {
  p.partials.assign(nodes.size(), 0);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const node& n = nodes[i];
    const std::uint32_t splits = c.splits(n.window, n.ahead);
    if (n.kernel != kernels::kernel::attention || splits == 1) continue;
    placed_value partials{text<32>{"partials"},
                          dtype::f32,
                          n.heads * splits * (n.value_width() + 4),
                          0,
                          kernels::attention_partial_bytes(c.tokens, n.heads, splits, n.value_width()),
                          i,
                          i};
    partials.offset = first_fit(p.values, partials);
    p.partials[i] = partials.offset;
    p.arena_bytes = (std::max)(p.arena_bytes, partials.offset + aligned(partials.bytes));
    p.values.push_back(partials);
  }
}

/// Reserves arena memory in which the two kernels of each walk exchange results. place_partials runs before it.
constexpr void place_walks(const std::vector<node>& nodes, const lowering_context& c, const ir::graph& g,
                           placement& p) {
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].value_norm == ir::none) continue;
    std::uint32_t down = i;
    for (std::uint32_t k = i + 1; k < nodes.size(); ++k)
      if (is_walked(nodes[k], c.tokens) && nodes[k].in == nodes[i].out) down = k;
    const ir::weight& gate = g.weights[static_cast<std::size_t>(nodes[i].weights[0])];
    placed_value totals{text<32>{"walk totals"},
                        dtype::f32,
                        0,
                        0,
                        walk_total_bytes(walk_shape_of(c.target, gate.rows, gate.columns), gate.rows),
                        i,
                        down};
    totals.width = static_cast<std::uint32_t>(totals.bytes / 4);
    totals.offset = first_fit(p.values, totals);
    p.partials[i] = p.partials[down] = totals.offset;
    p.arena_bytes = (std::max)(p.arena_bytes, totals.offset + aligned(totals.bytes));
    p.values.push_back(totals);
  }
}

}  // namespace intaglio::plan
