// SPDX-License-Identifier: MIT
// Passes of several tokens through a mixture of experts: lists of each expert's tokens, and prepared inputs of
// products.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "intaglio/kernels/expert_tiles.hpp"
#include "intaglio/plan/insert_f16.hpp"
#include "intaglio/plan/profile.hpp"

namespace intaglio::plan {

/// Tokens of a list of expert_tiles, where products have tiles of `tile` tokens. Lists are longer where experts have
/// enough tokens on average, for products with cooperative matrices.
constexpr std::uint32_t expert_list_tokens(std::uint32_t tile, std::uint32_t tokens, std::uint32_t experts,
                                           std::uint32_t top_k) {
  while (2 * tile <= 32 && std::uint64_t{2} * tile * experts <= std::uint64_t{tokens} * top_k) tile *= 2;
  return tile;
}

/// Most rows of a step that prepares inputs, a row by a workgroup: as many workgroups as any device has beside each
/// other.
inline constexpr std::uint64_t most_prepared_rows = 65'535;

/// Tokens of a list where arithmetic is f16. A product has tiles of that many tokens: a list that is not full costs a
/// whole tile, and one more list costs another read of the weights. 0: there would be more rows than can be prepared.
constexpr std::uint32_t expert_list_f16(std::uint32_t tokens, std::uint32_t experts, std::uint32_t top_k) {
  const auto fits = [&](std::uint32_t length) {
    return kernels::expert_tile_count(tokens, experts, top_k, length) <= most_prepared_rows / length;
  };
  if (std::uint64_t{96} * experts <= std::uint64_t{tokens} * top_k && fits(128)) return 128;
  return fits(64) ? 64 : 0;
}

/// The first weight of a node.
constexpr const ir::weight& weight_of(const ir::graph& g, const node& n) {
  return g.weights[static_cast<std::size_t>(n.weights[0])];
}
/// Whether the weights of a node are in a codec of blocks.
constexpr bool has_blocks(const ir::graph& g, const node& n) {
  return !kernels::is_dense(*codec_of(weight_of(g, n).type));
}
/// Rows of a token that a product reads.
constexpr std::uint32_t input_rows(const ir::graph& g, const node& n) {
  return g.values[static_cast<std::size_t>(n.in)].width / weight_of(g, n).columns;
}
/// Whether a product by weights in blocks reads an input that a node of its own has prepared.
constexpr bool reads_prepared(const ir::graph& g, const profile& target, const node& n, std::uint32_t tokens) {
  return target.work.chunk_tiles && has_blocks(g, n) && std::uint64_t{tokens} * input_rows(g, n) <= most_prepared_rows;
}

/// Makes the node that lists each expert's tokens, after `route`, and has the products of that choice read the lists.
constexpr node lists_of(ir::graph& g, const profile& target, const node& n, std::uint32_t tokens, std::uint32_t tile,
                        bool in_f16, std::vector<node>& nodes) {
  const auto multiplies = [](const node& other, ir::value_id choice) {
    return other.kernel == kernels::kernel::matmul && other.experts != 0 && other.choice == choice;
  };
  const std::uint32_t length_f16 = expert_list_f16(tokens, n.experts, n.top_k);
  bool all_blocks = true, all_f16 = in_f16 && length_f16 != 0;
  for (const node& other : nodes)
    if (multiplies(other, n.out)) {
      const ir::weight& w = weight_of(g, other);
      all_blocks = all_blocks && reads_prepared(g, target, other, tokens);
      all_f16 = all_f16 && w.columns % kernels::chunk_columns == 0 && w.rows / n.experts % 4 == 0;
    }
  node lists{.lowered = true,
             .kernel = kernels::kernel::expert_tiles,
             .where = n.where,
             .block = n.block,
             .in = n.out,
             .out = static_cast<ir::value_id>(g.values.size()),
             .experts = n.experts,
             .top_k = n.top_k,
             .list_tokens = all_f16      ? length_f16
                            : all_blocks ? expert_list_tokens(tile, tokens, n.experts, n.top_k)
                                         : tile};
  const std::uint32_t words =
      kernels::expert_tile_count(tokens, n.experts, n.top_k, lists.list_tokens) * (lists.list_tokens + 2);
  g.values.push_back({dtype::u32, (words + tokens - 1) / tokens, n.where, text<32>{"expert tiles"}});
  for (node& other : nodes)
    if (multiplies(other, n.out)) {
      other.choice = lists.out, other.list_tokens = lists.list_tokens;
      if (all_f16) other.kernel = kernels::kernel::matmul_chunk;
    }
  return lists;
}

/// Groups the tokens of a pass by expert, so that an expert's weights are read once for a list of its tokens. Each
/// product of a choice reads lists, which a node after `route` makes. Where the profile has chunks by tiles, products
/// of weights in blocks read an input that a node of its own has prepared.
/// @param tile tokens that share one read of the weights
/// @param in_f16 arithmetic of a chunk: products read f16 in the order of the lists
constexpr void group_by_expert(ir::graph& g, const profile& target, std::uint32_t tokens, std::uint32_t tile,
                               bool in_f16, std::vector<node>& nodes) {
  if (tokens == 1 || tile == 1) return;
  std::vector<node> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    node& n = nodes[i];
    if (n.kernel == kernels::kernel::route) {
      const node lists = lists_of(g, target, n, tokens, tile, in_f16, nodes);
      out.push_back(n);
      out.push_back(lists);
      continue;
    }
    if (n.kernel == kernels::kernel::matmul_chunk && n.list_tokens != 0) {
      const ir::weight w = weight_of(g, n);
      const std::uint32_t rows = kernels::expert_tile_count(tokens, n.experts, n.top_k, n.list_tokens) * n.list_tokens;
      const std::uint64_t words = std::uint64_t{rows} * (w.columns + 2);  // two more hold the row's factor
      node made = insert_in_front(g, n, kernels::kernel::quantize_f16,
                                  {dtype::f16, static_cast<std::uint32_t>((words + tokens - 1) / tokens), n.where,
                                   text<32>{"activations_f16"}});
      made.rule = rule_index("quantize_f16");
      made.choice = n.choice, made.list_tokens = n.list_tokens;
      made.experts = n.experts, made.top_k = n.top_k, made.columns = w.columns;
      if (kernels::takes_fragments(*codec_of(w.type), rows_together(g, n) / n.experts, w.columns))
        made.weights[0] = n.weights[0];
      push_after(out, n, made,
                 [&](ir::weight_id a, ir::weight_id b) { return order_of_f16(g, a) == order_of_f16(g, b); });
    } else if (n.list_tokens != 0 && reads_prepared(g, target, n, tokens)) {
      const std::uint32_t columns = weight_of(g, n).columns, rows = input_rows(g, n);
      node made = insert_in_front(g, n, kernels::kernel::fixed,
                                  {dtype::u32, rows * kernels::fixed_words(columns), n.where, text<32>{"fixed"}});
      made.top_k = rows;
      n.kernel = kernels::kernel::matmul_batch;
      out.push_back(made);
    }
    out.push_back(n);
  }
  nodes = std::move(out);
}

}  // namespace intaglio::plan
