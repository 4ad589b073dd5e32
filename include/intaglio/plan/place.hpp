// SPDX-License-Identifier: MIT
// Placement: when each value lives and at which offset of the arena, so that no two live values overlap and the arena
// is small. A stream that is updated in place keeps its offset. A value that crosses into the period lives through all
// of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/core/checked.hpp"
#include "intaglio/plan/node.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Offset of the factors of an int8 value, after its tokens x width bytes (norm_quantize writes both).
constexpr std::uint64_t factors_offset(std::uint64_t tokens, std::uint64_t width) {
  return aligned(tokens * width, 16);
}

/// Bytes of a value for a number of tokens. int8 values have 8 bytes of factors for each token after them.
constexpr std::uint64_t value_bytes(const ir::value& v, std::uint64_t tokens) {
  if (v.type == dtype::i8) return factors_offset(tokens, v.width) + tokens * 8;
  return tokens * v.width * info(v.type).block_bytes;
}

/// Where the values of a sequence are in the arena.
struct placement {
  std::vector<placed_value> values;     ///< one for each storage; a stream that is updated in place has one
  std::vector<std::uint32_t> storage;   ///< by value id: index into values, or no_storage
  std::vector<std::uint64_t> partials;  ///< by node: offset of an attention's exchanged results
  std::uint64_t arena_bytes = 0;
  static constexpr std::uint32_t no_storage = 0xFFFFFFFFu;
  constexpr std::uint64_t offset(ir::value_id id) const { return values[storage[static_cast<std::size_t>(id)]].offset; }
};

/// The smallest offset at which `bytes` fit between the placed values that live at the same time (first fit by offset).
constexpr std::uint64_t first_fit(const std::vector<placed_value>& placed, const placed_value& wanted) {
  std::uint64_t offset = 0;
  const placed_value* const all = placed.data();
  const std::size_t count = placed.size();
  // Goes round until `count` values in a row leave the offset as it is.
  for (std::size_t at = 0, left = count; left != 0; at = at + 1 == count ? 0 : at + 1, --left)
    if (all[at].first <= wanted.last && wanted.first <= all[at].last && offset < all[at].offset + all[at].bytes &&
        all[at].offset < offset + wanted.bytes)
      offset = aligned(all[at].offset + all[at].bytes), left = count;
  return offset;
}

/// Gives every value its offset, the largest first, so that the others fill the gaps.
constexpr void fit_by_size(placement& p) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < p.values.size(); ++i) order.push_back(i);
  for (std::size_t i = 1; i < order.size(); ++i)  // insertion sort: stable and cheap in a constant evaluation
    for (std::size_t k = i; k > 0 && p.values[order[k]].bytes > p.values[order[k - 1]].bytes; --k)
      std::swap(order[k], order[k - 1]);
  std::vector<placed_value> placed;
  for (const auto i : order) {
    p.values[i].offset = first_fit(placed, p.values[i]);
    p.arena_bytes = (std::max)(p.arena_bytes, p.values[i].offset + aligned(p.values[i].bytes));
    placed.push_back(p.values[i]);
  }
}

/// Colours the lifetimes of all values of `nodes` and gives each value an offset in the arena.
constexpr placement place(const ir::graph& g, const std::vector<node>& nodes, std::uint32_t tokens,
                          text<256>& failure) {
  placement p;
  p.storage.assign(g.values.size(), placement::no_storage);

  std::uint32_t period_first = 0, period_last = 0;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].where == ir::section::prologue) period_first = i + 1;
    if (nodes[i].where != ir::section::epilogue) period_last = i;
  }
  auto touch = [&](ir::value_id id, std::uint32_t at) {
    if (id == ir::none || p.storage[static_cast<std::size_t>(id)] == placement::no_storage) return;
    auto& v = p.values[p.storage[static_cast<std::size_t>(id)]];
    const bool from_before = v.first < period_first, in_period = at >= period_first && at <= period_last;
    v.last = (std::max)(v.last, from_before && in_period ? period_last : at);
  };
  // A value that every layer has lives from the start of the pass.
  auto hold = [&](ir::value_id id, std::uint32_t width, std::uint32_t at) {
    if (id == ir::none) return;
    const ir::value& v = g.values[static_cast<std::size_t>(id)];
    auto& storage = p.storage[static_cast<std::size_t>(id)];
    if (v.each_layer && storage != placement::no_storage) return;  // another kind of layer has reserved the same offset
    storage = static_cast<std::uint32_t>(p.values.size());
    const ir::value held{v.type, width != 0 ? width : v.width, v.where, {}};
    const std::uint64_t bytes = value_bytes(held, tokens), stride = v.each_layer ? aligned(bytes) : 0;
    p.values.push_back({v.name, held.type, held.width, 0, v.each_layer ? g.layers * stride : bytes,
                        v.each_layer ? 0 : at, at, stride});
  };
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const node& n = nodes[i];
    touch(n.in, i);
    touch(n.up_in, i);
    touch(n.k_in, i);
    touch(n.v_in, i);
    touch(n.stream, i);
    touch(n.choice, i);
    for (const ir::value_id id : {n.gates, n.values})
      if (n.kernel == kernels::kernel::walk_trace) touch(id, i);
      else hold(id, 0, i);
    if (n.out == ir::none) continue;
    if (n.stream != ir::none) {
      p.storage[static_cast<std::size_t>(n.out)] = p.storage[static_cast<std::size_t>(n.stream)];
      touch(n.out, i);
      continue;
    }
    hold(n.out, n.out_width, i);
  }
  if (g.output != ir::none) touch(g.output, static_cast<std::uint32_t>(nodes.size()));
  for (const ir::value_id end : g.block_ends)
    if (p.storage[static_cast<std::size_t>(g.stream_in)] != p.storage[static_cast<std::size_t>(end)] && failure.empty())
      failure.append(
          "repeat: expected a block that ends by adding to its input (residual), found one that returns another value");
  fit_by_size(p);
  return p;
}

}  // namespace intaglio::plan
