// SPDX-License-Identifier: MIT
// Inserts nodes that convert inputs of products to f16, where arithmetic is f16.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/kernels/attention_f16.hpp"
#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/insert_node.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

/// The order in which a product of this weight reads f16 inputs, if fragments can load it; rows for `ir::none`.
constexpr kernels::f16_order order_of_f16(const ir::graph& g, ir::weight_id id) {
  return id == ir::none ? kernels::f16_order::rows
                        : kernels::fragment_order(*codec_of(g.weights[static_cast<std::size_t>(id)].type));
}

/// Where arithmetic is f16, each product of coded weights reads an input that a node before it converted to f16; in a
/// batch the head of dense weights does too. In a chunk attention becomes attention_f16, also where only the profile's
/// chunk_attention is f16. Two kinds of products stay unchanged: products of experts, because tokens use different
/// experts, and products that choose experts, because their result must not depend on the kind of pass.
/// @param tokens of the pass
constexpr void insert_f16(ir::graph& g, const profile& target, bool chunk, std::uint32_t tokens,
                          std::vector<node>& nodes) {
  bool coded = chunk && target.chunk_attention == chunk_arithmetic::f16, routes = false;
  for (const node& n : by_pointer(nodes)) {
    coded = coded || (chunk && n.kernel == kernels::kernel::matmul);
    routes = routes || n.kernel == kernels::kernel::route;
  }
  std::vector<node> out;
  for (node& n : by_pointer(nodes)) {
    const std::uint32_t rows = rows_together(g, n);
    const bool head = !chunk && n.kernel == kernels::kernel::dense_matmul;
    const std::uint32_t columns =
        n.kernel == kernels::kernel::matmul || head ? g.values[static_cast<std::size_t>(n.in)].width : 0;
    if (const std::uint32_t step = kernels::attention_f16_step(n.head_dim);
        n.kernel == kernels::kernel::attention && coded && n.head_dim % step == 0 && n.value_dim % step == 0)
      n.kernel = kernels::kernel::attention_f16;
    bool chooses = false;
    if (columns != 0 && routes)
      for (const node& other : by_pointer(nodes))
        chooses = chooses || (other.kernel == kernels::kernel::route && other.in == n.out);
    if (columns == 0 || columns % kernels::chunk_columns != 0 || rows % 4 != 0 || n.experts != 0 || chooses) {
      out.push_back(n);
      continue;
    }
    node made =
        insert_in_front(g, n, kernels::kernel::quantize_f16,
                        {dtype::f16, columns + 2, n.where, text<32>{"activations_f16"}});  // + 2: the token's factor
    made.rule = rule_index("quantize_f16");
    // For many tokens the weight names the codec, where the product may load fragments.
    if ((chunk || tokens > kernels::most_batch_tokens) &&
        kernels::takes_fragments(*codec_of(g.weights[static_cast<std::size_t>(n.weights[0])].type), rows, columns))
      made.weights[0] = n.weights[0];
    if (head) made.prologue = kernels::prologue::norm;
    n.kernel = kernels::kernel::matmul_chunk;
    push_after(out, n, made,
               [&](ir::weight_id a, ir::weight_id b) { return order_of_f16(g, a) == order_of_f16(g, b); });
    out.push_back(n);
  }
  nodes = std::move(out);
}

}  // namespace intaglio::plan
