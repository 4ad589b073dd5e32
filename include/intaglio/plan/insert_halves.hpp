// SPDX-License-Identifier: MIT
// Nodes that make halves of what products read, where arithmetic is in halves.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "intaglio/core/message.hpp"
#include "intaglio/kernels/few_tile.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/insert_node.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

/// In which order a product of this weight wants halves, where it may be one by fragments; `ir::none`: where it may
/// not.
constexpr kernels::halves_order order_of_halves(const ir::graph& g, ir::weight_id id) {
  return id == ir::none ? kernels::halves_order::rows
                        : kernels::fragment_order(*codec_of(g.weights[static_cast<std::size_t>(id)].type));
}

/// Where arithmetic is `halves` each product of coded weights reads what a node of its own in front of it made of the
/// input; in a chunk attention is that of halves too, as where the profile says so; in a batch a head of dense weights.
/// Experts' products are not, each token has others; nor are those by which they are chosen, which must be the same
/// however a token comes.
/// @param tokens of the pass
constexpr void insert_halves(ir::graph& g, const profile& target, bool chunk, std::uint32_t tokens,
                             std::vector<node>& nodes) {
  bool coded = chunk && target.chunk_attention == chunk_arithmetic::halves;
  for (const node& n : nodes) coded = coded || (chunk && n.kernel == kernels::kernel::matmul);
  std::vector<node> out;
  for (node& n : nodes) {
    const std::uint32_t rows = rows_together(g, n);
    const bool head = !chunk && n.kernel == kernels::kernel::dense_matmul;
    const std::uint32_t columns =
        n.kernel == kernels::kernel::matmul || head ? g.values[static_cast<std::size_t>(n.in)].width : 0;
    if (n.kernel == kernels::kernel::attention && coded && n.head_dim <= 256 &&
        n.head_dim % (n.head_dim > 128 ? 32 : 16) == 0)
      n.kernel = kernels::kernel::attention_halves;
    bool chooses = false;
    for (const node& other : nodes) chooses = chooses || (other.kernel == kernels::kernel::route && other.in == n.out);
    if (columns == 0 || columns % kernels::chunk_columns != 0 || rows % 4 != 0 || n.experts != 0 || chooses) {
      out.push_back(n);
      continue;
    }
    node made =
        insert_in_front(g, n, kernels::kernel::halves,
                        {dtype::f16, columns + 2, n.where, text<32>{"halves"}});  // two more hold the token's factor
    made.rule = rule_index("halves");
    // Of many tokens the codec is asked for, where the product may be one by fragments.
    if ((chunk || tokens > kernels::most_few_tokens) &&
        kernels::takes_fragments(*codec_of(g.weights[static_cast<std::size_t>(n.weights[0])].type), rows, columns))
      made.weights[0] = n.weights[0];
    if (head) made.prologue = kernels::prologue::norm;
    n.kernel = kernels::kernel::matmul_chunk;
    push_behind(out, n, made,
                [&](ir::weight_id a, ir::weight_id b) { return order_of_halves(g, a) == order_of_halves(g, b); });
    out.push_back(n);
  }
  nodes = std::move(out);
}

}  // namespace intaglio::plan
