// SPDX-License-Identifier: MIT
// Drafts of a graph's sequences, one after the other, with the weights that they share.
#pragma once

#include <cstdint>
#include <string_view>

#include "intaglio/core/by_pointer.hpp"
#include "intaglio/plan/draft_sequence.hpp"
#include "intaglio/plan/kept_state.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/plan/weight_list.hpp"

namespace intaglio::plan {

/// Checks a config by itself, before a graph is made from it.
constexpr void check_config(const decoder_config& c, std::uint32_t context, const profile& target, text<256>& failure) {
  auto refuse = [&](auto... parts) {
    if (failure.empty()) (failure.append(parts), ...);
  };
  if (context == 0 || context > c.max_position_embeddings)
    refuse("context: expected 1 to max_position_embeddings ", c.max_position_embeddings, ", found ", context);
  if (c.vocab_size > kernels::largest_vocabulary)
    refuse("vocab_size: expected at most ", kernels::largest_vocabulary, ", which the sampler can sum up, found ",
           c.vocab_size);
  if (target.prefill_tokens == 0 || target.logits_tokens == 0)
    refuse("profile ", target.name, ": prefill_tokens and logits_tokens: expected at least 1, found ",
           target.prefill_tokens, " and ", target.logits_tokens);
  if (target.work.tile_tokens == 0 ||
      target.prefill_tokens % (target.work.tile_tokens == 0 ? 1 : target.work.tile_tokens) != 0)
    refuse("profile ", target.name, ": prefill_tokens: expected a multiple of tile_tokens ", target.work.tile_tokens,
           ", found ", target.prefill_tokens);
  if (target.work.ternary_tile_tokens == 0 || target.work.ternary_tile_tokens > kernels::most_ternary_tile_tokens)
    refuse("profile ", target.name, ": ternary_tile_tokens: expected 1 to ", kernels::most_ternary_tile_tokens,
           ", found ", target.work.ternary_tile_tokens);
}
/// Lowers a graph to the draft of one sequence.
/// @param before the draft of the previous sequence in the order of sequence_id; nullptr for the first
constexpr draft draft_graph(const ir::graph& g, const decoder_config& config, const profile& target,
                            std::uint32_t context, sequence_id which, const draft* before) {
  draft out;
  weight_list weights;
  const bool encodes = family_of(config.model_type).encoder;
  if (before != nullptr) {
    out.failure = before->failure;
    for (const weight& each : before->weights.all()) weights.weights.push_back(each);
    weights.global_bytes = before->global_weight_bytes;
    weights.layer_bytes = before->layer_weight_bytes;
  } else {
    check_config(config, context, target, out.failure);
    if (out.failure.empty()) out.failure = g.failure;
    if (out.failure.empty() && g.output == ir::none && !encodes)
      out.failure.append("graph: expected an lm_head at its end, found none");
    if (out.failure.empty() && g.layers == 0)
      out.failure.append("graph: expected a repeat around the blocks of a model, found none");
  }
  if (!out.failure.empty()) return out;
  sequence_kind kind = kind_of(which, target, context);
  if (encodes) kind.head = kind.sampler = false;
  // Recurrent models have no pass over drafts: the state would have to be as it was after drafts that are rejected.
  // Encoders have none either, because they have no logits.
  const bool wanted = which == sequence_id::verify   ? kind.tokens > 1 && !is_recurrent(g) && !encodes
                      : which == sequence_id::logits ? !encodes
                                                     : true;
  if (wanted) draft_sequence(g, config, target, context, kind, weights, out.sequence, out.failure);
  if (!out.failure.empty()) return out;
  out.weights.assign(weights.weights, "weights", out.failure);
  out.global_weight_bytes = weights.global_bytes;
  out.layer_weight_bytes = weights.layer_bytes;
  out.pattern = g.pattern;
  const lowering_context sizes{config, target, 1, widest_tokens(target, context), context};
  for (const ir::op& o : by_pointer(g.ops))
    if (o.kind == ir::op_kind::attention && o.head_dim > kernels::most_head_dim && out.failure.empty())
      out.failure.append(o.layer.view(), ": expected heads of at most ", kernels::most_head_dim, " channels, found ",
                         o.head_dim);
  for (const ir::op& o :
       by_pointer(g.ops)) {  // a layer's attention follows the op that writes its cache, if there is one
    if (o.kind != ir::op_kind::cache_write && (o.kind != ir::op_kind::attention || out.caches[o.block].positions != 0))
      continue;
    out.caches[o.block] =
        cache_for(o.kv_heads, o.head_dim, o.value_dim, sizes.cache_positions(o.window), o.window, target);
    out.caches[o.block].shared = o.kind == ir::op_kind::attention;
  }
  for (const ir::op& o : by_pointer(g.ops))
    if (o.where == ir::section::period) out.caches[o.block].kept_bytes += kept_bytes(g, o);
  for (std::uint32_t layer = 0; layer < g.layers; ++layer)
    if (out.caches[g.pattern(layer)].shared && cache_owner(g.pattern, out.caches, layer) == layer &&
        out.failure.empty())
      out.failure.append("self_attention: expected a layer before layer ", layer,
                         " with keys and values as wide and as many as it shares, found none");
  return out;
}

/// The table without its sequences, weights and hash.
constexpr table table_of(const draft& from, const decoder_config& config, std::string_view model, const profile& target,
                         std::uint32_t context) {
  table t;
  t.model = model;
  t.profile = target.name;
  t.classes = target.classes;
  t.config = &config;
  t.global_weight_bytes = from.global_weight_bytes;
  t.layer_weight_bytes = from.layer_weight_bytes;
  t.context = context;
  t.max_tokens = widest_tokens(target, context);
  t.ring_size = target.ring_size;
  t.cache_element = target.cache_element;
  t.pattern = from.pattern;
  t.caches = from.caches;
  return t;
}

}  // namespace intaglio::plan
