// SPDX-License-Identifier: MIT
// Inserts nodes that convert inputs of small-batch products to fixed-point numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/insert_node.hpp"

namespace intaglio::plan {

/// In a pass over a batch or drafts each product of weights in blocks reads an input that a node of its own has
/// converted. Workgroups that converted eight tokens each would take longer for that than for the product.
constexpr void insert_fixed(ir::graph& g, std::vector<node>& nodes) {
  std::vector<node> out;
  for (node& n : by_pointer(nodes)) {
    const std::uint32_t rows = rows_together(g, n);
    const bool has_blocks = n.kernel == kernels::kernel::matmul &&
                            !kernels::is_dense(*codec_of(g.weights[static_cast<std::size_t>(n.weights[0])].type));
    if (has_blocks && n.experts == 0 && rows % 4 == 0) {
      node made = insert_in_front(g, n, kernels::kernel::fixed,
                                  {dtype::u32, kernels::fixed_words(g.values[static_cast<std::size_t>(n.in)].width),
                                   n.where, text<32>{"fixed"}});
      made.weights[0] = n.weights[0];  // not a weight of this node: it names the codec
      n.kernel = kernels::kernel::matmul_batch;
      push_after(out, n, made, [&](ir::weight_id a, ir::weight_id b) {
        const auto tiled = [&](ir::weight_id id) {
          return kernels::wants_tiles(*codec_of(g.weights[static_cast<std::size_t>(id)].type), 8);
        };
        return tiled(a) == tiled(b);
      });
    }
    out.push_back(n);
  }
  nodes = std::move(out);
}

}  // namespace intaglio::plan
