// SPDX-License-Identifier: MIT
// Forms of the head: which product is the head, a separate norm before it, and unrolled products of decode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/kernels/dense_rows.hpp"
#include "intaglio/kernels/ternary_rows.hpp"
#include "intaglio/plan/insert_node.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

/// Whether the head's rows can be stored as int8: its columns are a multiple of 16.
constexpr bool screenable(const ir::graph& g, const node& head) {
  return g.weights[static_cast<std::size_t>(head.weights[0])].columns % 16 == 0;
}

/// Index of the head's product: the last node, or the one before the node that bounds the logits.
constexpr std::size_t head_of(const ir::graph& g, const std::vector<node>& nodes) {
  std::size_t at = nodes.size() - 1;
  while (at != 0 && nodes[at].in == g.head) --at;
  return at;
}
/// Whether kernel dense_rows can compute the head of dense weights.
constexpr bool has_rows(const ir::graph& g, const std::vector<node>& nodes) {
  if (nodes.empty() || nodes[head_of(g, nodes)].kernel != kernels::kernel::dense_matmul) return false;
  const ir::weight& w = g.weights[static_cast<std::size_t>(nodes[head_of(g, nodes)].weights[0])];
  return kernels::has_dense_rows(*codec_of(w.type), w.columns);
}

/// Inserts a node that normalises the input of a head of dense weights, for small batches and for every pass of a CPU
/// driver. Otherwise each subgroup would normalise it again for every four rows.
constexpr void insert_norm(ir::graph& g, std::vector<node>& nodes, kernels::kernel product, std::uint8_t rule) {
  const std::size_t at = nodes.empty() ? 0 : head_of(g, nodes);
  if (nodes.empty() || nodes[at].kernel != kernels::kernel::dense_matmul) return;
  node& head = nodes[at];
  const node made{.lowered = true,
                  .kernel = kernels::kernel::rms_norm,
                  .where = head.where,
                  .block = head.block,
                  .in = head.in,
                  .out = static_cast<ir::value_id>(g.values.size()),
                  .norm = head.norm,
                  .eps = head.eps};
  g.values.push_back(
      {dtype::f32, g.values[static_cast<std::size_t>(head.in)].width, head.where, text<32>{"normalised"}});
  head.kernel = product;
  head.in = made.out;
  head.norm = ir::none;
  if (rule != 0) head.rule = rule;
  nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(at), made);
}

/// Uses unrolled ternary products in decode on CPU drivers, for models larger than any cache. A node before each
/// product quantises its input.
constexpr void unroll_products(ir::graph& g, const decoder_config& config, const profile& target,
                               std::vector<node>& nodes) {
  if (std::uint64_t{config.hidden_size} * config.intermediate_size < target.work.unrolled_weights) return;
  std::vector<node> out;
  for (node& n : nodes) {
    const bool norms = n.kernel == kernels::kernel::ternary_matmul && kernels::quantizes(n.prologue) && !n.walk;
    std::uint32_t rows = 0;
    for (std::uint32_t i = 0; norms && i < n.weight_count; ++i)
      rows += g.weights[static_cast<std::size_t>(n.weights[i])].rows;
    if (norms && kernels::has_ternary_rows(g.weights[static_cast<std::size_t>(n.weights[0])].columns, rows)) {
      const std::uint32_t columns = g.weights[static_cast<std::size_t>(n.weights[0])].columns;
      out.push_back(
          insert_in_front(g, n, kernels::kernel::norm_quantize, {dtype::i8, columns, n.where, text<32>{"quantised"}}));
      n.kernel = kernels::kernel::ternary_rows;
      n.rule = rule_index("unrolled");
      n.prologue = kernels::prologue::quantized;
    }
    out.push_back(n);
  }
  nodes = std::move(out);
}

}  // namespace intaglio::plan
