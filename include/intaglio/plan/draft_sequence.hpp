// SPDX-License-Identifier: MIT
// A sequence of a graph: fused, rewritten for the profile, placed, lowered and ordered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/plan/draft.hpp"
#include "intaglio/plan/fuse.hpp"
#include "intaglio/plan/group_by_expert.hpp"
#include "intaglio/plan/head_forms.hpp"
#include "intaglio/plan/insert_f16.hpp"
#include "intaglio/plan/insert_fixed.hpp"
#include "intaglio/plan/keep_traces.hpp"
#include "intaglio/plan/lower.hpp"
#include "intaglio/plan/order.hpp"
#include "intaglio/plan/place.hpp"
#include "intaglio/plan/place_partials.hpp"
#include "intaglio/plan/sequence_kind.hpp"
#include "intaglio/plan/walk_shape.hpp"

namespace intaglio::plan {

/// The nodes of a sequence: fused, then rewritten for the profile and the number of tokens.
/// @param g gets the values of nodes that are inserted
constexpr std::vector<node> sequence_nodes(ir::graph& g, const decoder_config& config, const lowering_context& c,
                                           sequence_kind kind, text<256>& failure) {
  const profile& target = c.target;
  fuser fusion{g,
               {.norm_prologue = target.work.norm_prologue && kind.tokens == 1,
                .walks = kind.tokens == 1,
                .coded_cache = kernels::is_coded(target.cache_element)}};
  std::vector<node> nodes = fusion.run(failure);
  if (!failure.empty()) return {};
  if (!kind.head && !family_of(config.model_type).encoder)  // the nodes after an encoder's layers compute its states
    while (!nodes.empty() && nodes.back().where == ir::section::epilogue) nodes.pop_back();
  const bool small_batch = is_small_batch(target, kind.tokens, kind.batch.slot_count != 0);
  // Where the context is not a multiple of the tile, matmul stays.
  const bool batch = kind.batch.slot_count != 0, chunk = !small_batch && !batch &&
                                                         target.coded_chunks == chunk_arithmetic::f16 &&
                                                         kind.tokens > target.work.tile_tokens;
  if (chunk || (batch && kind.batch.coded_products == chunk_arithmetic::f16))
    insert_f16(g, target, chunk, kind.tokens, nodes);
  else if (small_batch && (batch || kind.tokens % target.work.tile_tokens == 0)) insert_fixed(g, nodes);
  group_by_expert(g, target, kind.tokens, c.tile_tokens(), chunk, nodes);
  if (small_batch) insert_norm(g, nodes, kernels::kernel::dense_batch, 0);
  if (kind.tokens == 1 && kind.sampler) keep_traces(g, nodes, failure);
  if (kind.tokens == 1 && kind.batch.slot_count == 0 && target.work.unrolled) {
    unroll_products(g, config, target, nodes);
    if (has_rows(g, nodes)) insert_norm(g, nodes, kernels::kernel::dense_rows, rule_index("unrolled"));
  }
  if (!failure.empty()) return {};
  join_walks(nodes, kind.tokens);
  check_sums(g, nodes, failure);
  if (!failure.empty()) return {};
  if (kind.tokens == 1) split_sums(target, g, nodes);
  return nodes;
}

/// Reserves arena memory that dispatches `first` to `last` use to exchange results. @return its offset in the arena
constexpr std::uint64_t add_room(placement& p, std::string_view name, dtype type, std::uint32_t width,
                                 std::uint64_t bytes, std::uint32_t first, std::uint32_t last) {
  placed_value value{text<32>{name}, type, width, 0, bytes, first, last};
  value.offset = first_fit(p.values, value);
  p.arena_bytes = (std::max)(p.arena_bytes, value.offset + aligned(bytes));
  p.values.push_back(value);
  return value.offset;
}

/// Copies lists into a draft. @error in `failure`: a list that is longer than a draft has room for
constexpr void keep(drafted_sequence& out, const std::vector<dispatch>& prologue, const std::vector<dispatch>& period,
                    const std::vector<dispatch>& epilogue, const std::vector<placed_value>& values,
                    text<256>& failure) {
  out.prologue.assign(prologue, "dispatches before the layers", failure);
  out.period.assign(period, "dispatches in a period", failure);
  out.epilogue.assign(epilogue, "dispatches after the layers", failure);
  out.values.assign(values, "values", failure);
}

/// The hidden states that a pass leaves: the stream after the layers; for an encoder, the output of its epilogue.
constexpr ir::value_id stream_of(const ir::graph& g, const std::vector<node>& nodes, sequence_kind kind) {
  return !kind.head && nodes.back().where == ir::section::epilogue ? nodes.back().out : g.stream_out;
}

/// Plans one sequence of a model: fuses, lowers and orders its dispatches.
/// @error in `failure`: what the model has and no kernel computes, or what a plan has no room for
constexpr void draft_sequence(const ir::graph& traced, const decoder_config& config, const profile& target,
                              std::uint32_t context, sequence_kind kind, weight_list& weights, drafted_sequence& out,
                              text<256>& failure) {
  ir::graph g = traced;
  const lowering_context c{config, target, kind.tokens, widest_tokens(target, context), context, kind.batch};
  std::vector<node> nodes = sequence_nodes(g, config, c, kind, failure);
  if (!failure.empty()) return;
  placement p = place(g, nodes, kind.tokens, failure);
  if (!failure.empty()) return;
  place_partials(nodes, c, p);
  place_walks(nodes, c, g, p);
  const auto head = static_cast<std::uint32_t>(nodes.size()) - 1;
  const bool decodes = kind.sampler && kind.tokens == 1,
             dense_head = nodes[head].kernel == kernels::kernel::dense_matmul;
  const bool screens = decodes && dense_head && target.head_screen && screenable(g, nodes[head]);
  const bool keeps_firsts =
      decodes && !screens && target.work.head_firsts && (dense_head || nodes[head].kernel == kernels::kernel::matmul);
  const std::uint32_t sampler = head + (screens ? 2 : 1);
  head_values values;
  if (screens) {
    p.values[p.storage[static_cast<std::size_t>(g.output)]].last = sampler;
    values.y = add_room(p, "normalised", dtype::f32, config.hidden_size, std::uint64_t{4} * config.hidden_size, head,
                        head + 1);
    values.lowest = add_room(p, "lowest of the largest", dtype::f32, target.work.head_groups,
                             std::uint64_t{4} * target.work.head_groups, head, head + 1);
  }
  if (screens || keeps_firsts)
    values.firsts = add_room(p, "first tokens", dtype::u32, 2 * target.work.head_groups,
                             std::uint64_t{8} * target.work.head_groups, head, sampler);
  lowering lower{g, p, c, weights};
  std::vector<dispatch> prologue, period, epilogue;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    (nodes[i].where == ir::section::prologue ? prologue
     : nodes[i].where == ir::section::period ? period
                                             : epilogue)
        .push_back(lower.lower(nodes[i], i));
  if (screens) {
    const auto [screen, rescore] = lower.screened(nodes[head], epilogue.back(), values);
    epilogue.back() = screen, epilogue.push_back(rescore);
  } else if (keeps_firsts) {
    lower.keep_firsts(epilogue.back(), values.firsts);
  }
  out.residual_offset = p.offset(stream_of(g, nodes, kind));
  if (kind.head) out.logits_offset = p.offset(g.output);
  if (kind.sampler) {
    const bool drafts = kind.tokens > 1 && kind.batch.slot_count == 0;
    const std::uint64_t scratch =
        add_room(p, "sample scratch", dtype::u32,
                 static_cast<std::uint32_t>(kernels::sample_scratch_bytes(config.vocab_size, c.sample_slice()) / 4),
                 kernels::sample_scratch_bytes(config.vocab_size, c.sample_slice()) * kind.tokens, sampler, sampler);
    const std::uint64_t drawn =
        drafts ? add_room(p, "drawn tokens", dtype::u32, 1, std::uint64_t{4} * kind.tokens, sampler, sampler + 1) : 0;
    epilogue.push_back(lower.sampler(epilogue.back(), out.logits_offset, scratch, drawn));
    if (drafts) epilogue.push_back(lower.acceptor(drawn));
  }
  order(prologue, period, epilogue, g.pattern, g.layers);
  keep(out, prologue, period, epilogue, p.values, failure);
  out.arena_bytes = p.arena_bytes;
  out.has_head = kind.head, out.has_sampler = kind.sampler;
}

}  // namespace intaglio::plan
