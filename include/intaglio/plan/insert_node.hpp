// SPDX-License-Identifier: MIT
// Inserts nodes that prepare the input of another node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/ir/op.hpp"
#include "intaglio/plan/node.hpp"

namespace intaglio::plan {

/// Makes a node that prepares the input of `n`, with the norm of `n`. From then on `n` reads the prepared value, which
/// is added to the graph's values.
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

/// Finds the node that already prepared an input, or nullptr. Products of one input by weights of several codecs follow
/// each other; they share the prepared input of the first if they need the same one.
/// @param n the node that a product would have before it
/// @param same whether a node's `weights[0]`, which names a codec, leads to the same input as n's
template <class Same>
constexpr const node* made_before(const std::vector<node>& nodes, const node& n, Same&& same) {
  for (const node& each : by_pointer(nodes))
    if (each.kernel == n.kernel && each.where == n.where && each.block == n.block && each.in == n.in &&
        each.norm == n.norm && each.eps == n.eps && each.prologue == n.prologue && each.top_k == n.top_k &&
        same(each.weights[0], n.weights[0]))
      return &each;
  return nullptr;
}
/// Inserts the node `made` before n, or has n read the value of an equal node that is there.
template <class Same>
constexpr void push_after(std::vector<node>& nodes, node& n, const node& made, Same&& same) {
  if (const node* const known = made_before(nodes, made, same)) n.in = known->out;
  else nodes.push_back(made);
}

/// Rows of a product's matrices, summed over all that are stacked.
constexpr std::uint32_t rows_together(const ir::graph& g, const node& n) {
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < n.weight_count; ++i) rows += g.weights[static_cast<std::size_t>(n.weights[i])].rows;
  return rows;
}

}  // namespace intaglio::plan
