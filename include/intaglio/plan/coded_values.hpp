// SPDX-License-Identifier: MIT
// The values of a resident dispatch of coded weights: their offsets in the arena, the operands of the chain's
// dispatches there, and the dispatch's arguments (kernels/layers_coded.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "intaglio/plan/coded_attention.hpp"
#include "intaglio/plan/coded_chain.hpp"
#include "intaglio/plan/coded_ffns.hpp"
#include "intaglio/plan/one_dispatch.hpp"

namespace intaglio::plan {

/// Makes the values and the arguments of the resident dispatch of coded weights.
class coded_values : public one_dispatch {
 public:
  constexpr coded_values(const decoder_config& config, const profile& target, std::uint32_t context,
                         std::uint64_t counters_end)
      : one_dispatch(config, target, context, counters_end), chain_{config} {}

 protected:
  static constexpr auto at_product = kernels::push_ids<kernels::matmul_kernel>;
  static constexpr auto at_add = kernels::push_ids<kernels::norm_add_kernel>;
  static constexpr auto at_turn = kernels::push_ids<kernels::turn_kernel>;
  static constexpr auto at_attention = kernels::push_ids<kernels::attention_kernel>;
  static constexpr auto at_embed = kernels::push_ids<kernels::embed_kernel>;

  constexpr void place_values() {
    const std::uint32_t layers = config_.num_hidden_layers;
    stream_ = reserve("stream", config_.hidden_size, layers + 1);
    middle_ = reserve("after attention", config_.hidden_size, layers);
    query_ = reserve("query", config_.q_size() + 2 * config_.kv_size() + scores(), layers);
    attended_ = reserve("attention", config_.q_size(), layers);
    const std::uint32_t used = experts_.are_there() ? experts_.its.used : 1;
    if (experts_.are_there()) experts_.logits = reserve("router's logits", experts_.its.experts, layers);
    gated_ = reserve("gated", used * config_.intermediate_size, layers);
    if (attention_.turns) turned_ = reserve("query, turned", config_.q_size(), layers);
    if (chain_.inner_norms) {
      projected_ = reserve("projection", config_.hidden_size, layers);
      lowered_ = reserve("down", config_.hidden_size, layers);
    }
    for (std::uint32_t i = 0; i < ffns_.further(); ++i) {
      further_[i].gated = reserve(i == 0 ? "gated further" : "gated last", config_.intermediate_size, layers);
      further_[i].stream = reserve(i == 0 ? "after an FFN" : "after a second FFN", config_.hidden_size, layers);
    }
    std::uint32_t splits = 1;
    for (const block_steps& each : chain_.blocks) splits = (std::max)(splits, chain_.attention_at(each.attends).splits);
    if (splits > 1)
      partials_ =
          reserve("partials", config_.num_attention_heads * kernels::attention_spans(context_) * (config_.head_dim + 4),
                  layers);
    layers_bytes_ = arena_bytes;
    blank_offset = stream_.offset + stream_.layer_stride;
    blank_bytes = layers_bytes_ - blank_offset;
    if (experts_.are_there()) {
      experts_.choice = reserve("choice of experts", 2 * used, layers);
      experts_.given = reserve("experts", used * config_.hidden_size, layers);
    }
    if (experts_.its.biased) {
      experts_.gates = reserve("gates", used * config_.intermediate_size, layers);
      experts_.ups = reserve("ups", used * config_.intermediate_size, layers);
    }
    if (biased_projection_) projected_ = reserve("projection", config_.hidden_size, layers);
    reserve_after();
  }

  /// Whether workgroups share a head and exchange scores of positions, which are stored after query, key and value.
  constexpr bool shares_heads(std::uint32_t workgroups) const {
    return chain_.inner_norms && kernels::layers_coded::attention_shares * config_.num_attention_heads <= workgroups;
  }

  /// Has the embedding fill the layers' outputs with the unwritten pattern, instead of a fill before the pass. Of
  /// attention's partial results it fills only the spans that the pass has.
  constexpr void blank_beside() {
    const bool partial = partials_.where == region::arena;
    const std::uint64_t span = std::uint64_t{4} * (config_.head_dim + 4),
                        row = kernels::attention_spans(context_) * span;
    if (partial && partials_.layer_stride != config_.num_attention_heads * row)
      return;  // the spacing of heads' rows differs between layers
    dispatch& d = prologue[0];
    const auto fills = [&](kernels::push_id id, std::uint64_t offset, std::uint64_t bytes) {
      d[id] = {region::arena, 0, offset};
      d.accesses[d.access_count++] = {region::arena, true, 0, offset, bytes};
    };
    const auto quads = [](std::uint64_t bytes) { return static_cast<std::uint32_t>(bytes / 16); };
    const std::uint64_t always = partial ? partials_.offset - blank_offset : blank_bytes;
    fills(at_embed.blank, blank_offset, always);
    if (partial) fills(at_embed.blank_spans, partials_.offset, blank_bytes - always);
    change_constants<kernels::embed_kernel>(d, [&](auto& c) {
      c.blank_quads = quads(always);
      if (!partial) return;
      c.stretches = config_.num_hidden_layers * config_.num_attention_heads;
      c.span_quads = quads(span), c.stretch_quads = quads(row);
      c.spans = kernels::attention_spans(context_);
    });
    d.subgroups = kernels::layers_coded::resident_subgroups;
    d.groups[0] = 1 + parts_;
  }

  constexpr void bind(const block_steps& of) {
    const auto at = [&](std::size_t step) -> dispatch& { return period[step]; };
    bind_attention(of);
    if (chain_.inner_norms) {
      rebind(at(of.projection), attended_, projected_, nullptr);
      rebind(at(of.after_projection), projected_, middle_, &stream_);
      rebind(at(of.gated), middle_, gated_, nullptr);
      rebind(at(of.down), gated_, lowered_, nullptr);
      rebind(at(of.after_down), lowered_, next_, &middle_);
    } else {
      if (biased_projection_) {
        rebind(at(of.projection), attended_, projected_, nullptr);
        rebind(at(of.after_projection), projected_, middle_, &stream_);
      } else {
        rebind(at(of.projection), attended_, middle_, &after_early());
      }
      if (of.is_mixture()) experts_.bind(period, of, middle_, gated_, next_);
    }
    if (!chain_.inner_norms && !of.is_mixture()) {
      rebind(at(of.gated), middle_, gated_, nullptr);
      rebind(at(of.down), gated_, after_first(), &middle_);
    }
    if (of.early.is_there()) {
      rebind(at(of.early.gated), stream_, further_[0].gated, nullptr);
      rebind(at(of.early.down), further_[0].gated, further_[0].stream, &stream_);
    }
    if (const further_ffn& late = further_[ffns_.before]; of.late.is_there()) {
      rebind(at(of.late.gated), late.stream, late.gated, nullptr);
      rebind(at(of.late.down), late.gated, next_, &late.stream);
    }
    add_arguments(of);
  }
  constexpr const dispatch& with_cache(const block_steps& of) const { return period[attention_.with_cache(of)]; }

  coded_chain chain_;
  coded_attention attention_;
  bool biased_projection_ = false;  ///< of attention
  resident_experts experts_;

 private:
  constexpr std::uint32_t scores() const {
    const std::uint32_t heads = config_.num_attention_heads;
    return shares_heads(parts_) ? heads * kernels::attention_spans(context_) * kernels::attention_span : 0;
  }
  /// The stream that the attention sublayer reads, and the stream after the FFN that follows attention.
  constexpr const operand& after_early() const { return ffns_.before != 0 ? further_[0].stream : stream_; }
  constexpr const operand& after_first() const { return ffns_.after > 1 ? further_[ffns_.before].stream : next_; }
  constexpr operand query_after(std::uint64_t bytes) const {
    operand out = query_;
    out.offset += bytes;
    return out;
  }

  /// Binds a dispatch of kernel turn: q, k and v are stored one after the other.
  constexpr void bind_turn(dispatch& d) const {
    const std::array<kernels::push_id, 3> ids{at_turn.q, at_turn.k, at_turn.v};
    const std::array<std::uint64_t, 3> after{0, std::uint64_t{4} * config_.q_size(),
                                             std::uint64_t{4} * (config_.q_size() + config_.kv_size())};
    std::array<std::uint64_t, 3> old{};
    for (std::size_t i = 0; i < 3; ++i) old[i] = d[ids[i]].offset;
    for (std::size_t k = 0; k < d.access_count; ++k) {
      access& a = d.accesses[k];
      if (a.where != region::arena) continue;
      const operand& to = a.write ? turned_ : query_;
      std::uint64_t from = 0;
      for (std::size_t i = 0; i < 3 && !a.write; ++i)
        if (a.offset == old[i]) from = after[i];
      a.offset = to.offset + from, a.layer_stride = to.layer_stride;
    }
    for (std::size_t i = 0; i < 3; ++i) d[ids[i]] = query_after(after[i]);
    d[at_turn.output] = turned_;
  }
  constexpr void bind_attention(const block_steps& of) {
    dispatch& qkv = period[of.qkv];
    rebind(qkv, after_early(), query_, nullptr);
    const std::uint64_t bytes = std::uint64_t{4} * chain_.stacked_rows(of);
    for (std::size_t i = 0; i < qkv.access_count; ++i)
      if (access& a = qkv.accesses[i]; a.where == region::arena && a.write) a.bytes = bytes;
    if (of.apart()) rebind(period[of.v], after_early(), query_after(bytes), nullptr);
    if (of.turn != no_step) bind_turn(period[of.turn]);
    const operand& query = of.turn != no_step ? turned_ : query_;
    dispatch& attends = period[of.attends];
    const bool splits = chain_.attention_at(of.attends).splits > 1;
    const std::uint64_t partials_offset = attends[at_attention.partials].offset;
    for (std::size_t i = 0; i < attends.access_count; ++i) {
      access& a = attends.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = splits && a.offset == partials_offset ? partials_ : a.write ? attended_ : query;
      if (splits && a.offset == partials_offset)
        a.bytes = std::uint64_t{4} * config_.num_attention_heads * kernels::attention_spans(context_) *
                  (config_.head_dim + 4);
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    attends[at_attention.query] = query, attends[at_attention.output] = attended_;
    if (splits) attends[at_attention.partials] = partials_;
  }
  /// Arguments are as in kernels::layers, with the differences that kernels::layers_coded states. Norms before
  /// additions run after the workgroups' exchange.
  constexpr void add_arguments(const block_steps& of) {
    const auto at = [&](std::size_t step) -> const dispatch& { return period[step]; };
    const bool inner = chain_.inner_norms, outer = chain_.outer_norms, normalises = attention_.normalises_heads();
    const operand none{};
    const cache_operands cache = cache_operands::of(with_cache(of));
    const auto list = {stream_,
                       cache.keys,
                       cache.values,
                       query_,
                       attended_,
                       inner ? projected_ : middle_,
                       gated_,
                       inner ? lowered_ : after_first(),
                       outer ? at(of.qkv)[at_product.norm_weight] : none,
                       at(of.qkv)[at_product.weight],
                       cache.rope,
                       normalises ? at(of.turn)[at_turn.k_norm] : none,
                       at(of.projection)[at_product.weight],
                       inner ? at(of.after_projection)[at_add.norm_weight] : none,
                       outer ? at(of.gated)[at_product.norm_weight] : none,
                       at(of.gated)[at_product.weight],
                       normalises ? at(of.turn)[at_turn.q_norm] : none,
                       inner ? next_ : none,
                       at(of.down)[at_product.weight],
                       inner ? at(of.after_down)[at_add.norm_weight] : none,
                       partials_,
                       attention_.biased ? at(of.turn)[at_turn.bias] : none,
                       of.apart() ? at(of.v)[at_product.weight] : none};
    arguments.insert(arguments.end(), list.begin(), list.end());
    if (of.is_mixture()) arguments.insert(arguments.end(), {at(of.router)[at_product.weight], experts_.logits});
    if (has_additions()) add_additions(of);
    const auto further = [&](const block_steps::ffn& its, const operand& gated, const operand& out) {
      if (!its.is_there()) return;
      arguments.insert(arguments.end(),
                       {gated, out, at(its.gated)[at_product.norm_weight], at(its.gated)[at_product.weight], none, none,
                        at(its.down)[at_product.weight], none});
    };
    further(of.early, further_[0].gated, further_[0].stream);
    further(of.late, further_[ffns_.before].gated, next_);
  }

  /// Whether attention or the experts add more than a layer with experts usually does.
  constexpr bool has_additions() const { return experts_.its.biased || biased_projection_ || attention_.has_sinks; }
  /// The arguments from kernels::layers_coded::argument_sinks on.
  constexpr void add_additions(const block_steps& of) {
    const auto at = [&](std::size_t step) -> const dispatch& { return period[step]; };
    const bool biased = experts_.its.biased;
    const operand none{};
    constexpr auto at_gates = kernels::push_ids<kernels::gated_kernel>;
    arguments.insert(arguments.end(), {attention_.has_sinks ? at(of.attends)[at_attention.sinks] : none,
                                       biased_projection_ ? at(of.after_projection)[at_add.norm_weight] : none,
                                       biased ? at(of.route)[kernels::push_ids<kernels::route_kernel>.bias] : none,
                                       biased ? at(of.up)[at_product.weight] : none,
                                       biased ? at(of.activation)[at_gates.gate_bias] : none,
                                       biased ? at(of.activation)[at_gates.up_bias] : none,
                                       biased ? at(of.sum)[kernels::push_ids<kernels::expert_sum_kernel>.bias] : none});
  }

  operand turned_, projected_, lowered_;
};

}  // namespace intaglio::plan
