// SPDX-License-Identifier: MIT
// Nodes in front of others, which make what these read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "intaglio/ir/op.hpp"
#include "intaglio/plan/node.hpp"

namespace intaglio::plan {

/// A node that makes of what `n` reads, normalised as n would have it, the value that n reads from now on, which goes
/// behind the graph's.
constexpr node insert_in_front(ir::graph& g, node& n, kernels::kernel kernel, const ir::value& value) {
  const node made{.lowered = true,
                  .kernel = kernel,
                  .where = n.where,
                  .block = n.block,
                  .in = n.in,
                  .out = static_cast<ir::value_id>(g.values.size()),
                  .norm = n.norm,
                  .prologue = n.prologue,
                  .eps = n.eps};
  g.values.push_back(value);
  n.in = made.out;
  n.norm = ir::none;
  return made;
}

/// Products of one input by weights of several codecs, which stand one behind the other, read what was made for the
/// first where they want the same: the node that makes it, or nullptr.
/// @param n what a product would have in front of it
/// @param same whether a node's `weights[0]`, whose codec is asked for, means as much as n's
template <class Same>
constexpr const node* made_before(const std::vector<node>& nodes, const node& n, Same&& same) {
  for (const node& each : nodes)
    if (each.kernel == n.kernel && each.where == n.where && each.block == n.block && each.in == n.in &&
        each.norm == n.norm && each.eps == n.eps && each.prologue == n.prologue && each.top_k == n.top_k &&
        same(each.weights[0], n.weights[0]))
      return &each;
  return nullptr;
}
/// Puts in front of n what it reads, or has it read what is there.
template <class Same>
constexpr void push_behind(std::vector<node>& nodes, node& n, const node& made, Same&& same) {
  if (const node* const known = made_before(nodes, made, same)) n.in = known->out;
  else nodes.push_back(made);
}

/// Rows of a product's matrices, which stand together.
constexpr std::uint32_t rows_together(const ir::graph& g, const node& n) {
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < n.weight_count; ++i) rows += g.weights[static_cast<std::size_t>(n.weights[i])].rows;
  return rows;
}

}  // namespace intaglio::plan
