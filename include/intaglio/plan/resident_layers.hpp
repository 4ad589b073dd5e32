// SPDX-License-Identifier: MIT
// Decode with the resident dispatch (kernels::layers_interface), made from the chain of dispatches if its period is one
// that the kernel computes. Every step writes its own bytes in every layer. So any workgroup may repeat a step, also
// late, and values that are written can be recognised.
#pragma once

#include <array>
#include <vector>

#include "intaglio/plan/one_dispatch.hpp"

namespace intaglio::plan {

/// The most iterations that all loops of an invocation make together on llvmpipe (LP_MAX_TGSI_LOOP_ITERATIONS). The
/// driver ends every loop after them.
inline constexpr std::uint64_t llvmpipe_loop_turns = 65535;

/// Makes the sequence from a chain of dispatches for one token.
class resident_layers : public one_dispatch {
 public:
  using one_dispatch::one_dispatch;

  /// @return false if the profile has no resident dispatch, the kernel does not compute the period, llvmpipe would end
  /// its loops too early, or a GPU's workgroups are too small
  constexpr bool make(const std::vector<dispatch>& chain_prologue, const std::vector<dispatch>& chain_period,
                      const std::vector<dispatch>& chain_epilogue) {
    prologue = chain_prologue, period = chain_period, epilogue = chain_epilogue;
    if (target_.work.layers_parts == 0 || !fits()) return false;
    if (cooperative()) {
      if (!resident_fits(config_, of_product(qkv()).cache_element, target_.work.layers_parts, context_, ffns_))
        return false;
      parts_ = target_.work.layers_parts;
      place_values();
      bind();
      add_dispatch(resident_spin_limit);
      if (resident_long_fits(config_, parts_, context_, ffns_)) add_long();
      return true;
    }
    parts_ = choose_parts();
    const std::uint64_t turns = 2 * config_.num_hidden_layers * turns_of_layer(),
                        steps = std::uint64_t{config_.num_hidden_layers} * kernels::layers::steps;
    const std::uint64_t waiting = turns + 1024 < llvmpipe_loop_turns ? (llvmpipe_loop_turns - 1024 - turns) / steps : 0;
    if (waiting < 128) return false;
    place_values();
    bind();
    add_dispatch(static_cast<std::uint32_t>((std::min<std::uint64_t>)(waiting, 512)));
    return true;
  }

 private:
  using product_kernel = kernels::ternary_matmul_kernel;
  static constexpr auto at_product = kernels::push_ids<product_kernel>;
  static constexpr auto at_attention = kernels::push_ids<kernels::attention_kernel>;

  static constexpr product_kernel::constants of_product(const dispatch& d) { return constants_of<product_kernel>(d); }
  static constexpr kernels::attention_kernel::constants of_attention(const dispatch& d) {
    return constants_of<kernels::attention_kernel>(d);
  }
  constexpr bool product(const dispatch& d, kernels::epilogue how, std::uint32_t columns, std::uint32_t rows) const {
    if (d.kernel != kernel::ternary_matmul) return false;
    const auto c = of_product(d);
    return c.prologue == kernels::prologue::norm_quantize && c.epilogue == how && c.columns == columns &&
           c.rows == rows && (cooperative() || d.subgroups == 1);
  }

  /// Indices in the period: an FFN before attention, if there is one; q, k and v; attention; its projection; FFNs.
  constexpr std::size_t first_step() const { return 2 * ffns_.before; }
  constexpr const dispatch& qkv() const { return period[first_step()]; }
  constexpr dispatch& qkv() { return period[first_step()]; }
  constexpr const dispatch& attends() const { return period[first_step() + 1]; }
  constexpr dispatch& attends() { return period[first_step() + 1]; }

  constexpr bool is_ffn(std::size_t first) const {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    return product(period[first], epilogue::gated, hidden, 2 * inner) &&
           product(period[first + 1], epilogue::add, inner, hidden) &&
           period[first].activation == period.end()[-2].activation;
  }
  /// Finds the FFNs by the number of steps: one or two after attention, and at most one before it.
  constexpr bool finds_ffns() {
    const std::size_t steps = period.size();
    if (steps < kernels::layers::steps || steps > kernels::layers::steps + 4 || steps % 2 == 0) return false;
    ffns_.before = period[1].kernel == kernel::attention ? 0 : 1;
    const auto further = static_cast<std::uint32_t>(steps - kernels::layers::steps) / 2;
    if (further < ffns_.before) return false;
    ffns_.after = 1 + further - ffns_.before;
    return ffns_.after <= 2 && (cooperative() || further == 0);
  }
  constexpr bool fits() {
    using kernels::epilogue;
    if (prologue.size() != 1 || prologue[0].kernel != kernel::embed || !finds_ffns()) return false;
    if (this->epilogue.size() < 2 || this->epilogue.back().kernel != kernel::sample) return false;
    if (this->epilogue.size() != (this->epilogue[0].kernel == kernel::head_screen || normalises_first() ? 3u : 2u))
      return false;
    const std::uint32_t hidden = config_.hidden_size;
    if (!product(qkv(), epilogue::rope_cache, hidden, config_.q_size() + 2 * config_.kv_size()) ||
        attends().kernel != kernel::attention || !has_plain_scores(attends()) ||
        (!cooperative() && of_attention(attends()).splits != 1) ||
        !product(period[first_step() + 2], epilogue::add, config_.q_size(), hidden))
      return false;
    if (ffns_.before != 0 && !is_ffn(0)) return false;
    for (std::size_t i = first_step() + 3; i < period.size(); i += 2)
      if (!is_ffn(i)) return false;
    for (const dispatch& each : period)
      if (each.kernel == kernel::ternary_matmul && of_product(each).eps != of_product(qkv()).eps) return false;
    return true;
  }

  constexpr std::uint32_t choose_parts() const {
    std::uint64_t largest = 0;
    for (const auto& d : period)
      if (d.kernel == kernel::ternary_matmul)
        largest = (std::max)(largest, std::uint64_t{of_product(d).columns} * of_product(d).rows);
    const std::uint64_t busy =
        target_.work.group_weights == 0 ? target_.work.layers_parts : largest / target_.work.group_weights;
    return static_cast<std::uint32_t>(
        (std::min<std::uint64_t>)(target_.work.layers_parts, (std::max<std::uint64_t>)(2, busy)));
  }

  /// Loop iterations of a workgroup that computes a whole layer by itself, in subgroups of 4, the narrowest.
  constexpr std::uint64_t turns_of_layer() const {
    std::uint64_t out = 0;
    for (const auto& d : period)
      if (d.kernel == kernel::ternary_matmul) {
        const auto c = of_product(d);
        const std::uint64_t columns = c.columns, tiles = columns / 16, groups = c.rows / 4,
                            blocks = (columns + 127) / 128;
        const std::uint64_t norm = 2 * blocks + 8 * (blocks / 32 + 1) + tiles / 4 + 4;
        out += parts_ * norm + (groups / 16 + parts_) * (tiles + 8);
      }
    const std::uint64_t span_turns = kernels::attention_span / 4 + kernels::attention_span / 8 + 8;
    out += config_.num_attention_heads / (std::max)(1u, of_attention(attends()).heads_together) *
           (kernels::attention_spans(context_) * span_turns + 4);
    return out + 16;
  }

  /// Resident workgroups exchange the position's key and value together with the query.
  constexpr std::uint32_t query_width() const { return config_.q_size() + (cooperative() ? 2 * config_.kv_size() : 0); }
  constexpr bool has_partials() const { return of_attention(attends()).splits > 1; }

  constexpr void place_values() {
    const std::uint32_t layers = config_.num_hidden_layers;
    stream_ = reserve("stream", config_.hidden_size, layers + 1);
    middle_ = reserve("after attention", config_.hidden_size, layers);
    query_ = reserve("query", query_width(), layers);
    attended_ = reserve("attention", config_.q_size(), layers);
    gated_ = reserve("gated", config_.intermediate_size, layers);
    if (has_partials()) {
      partials_ = reserve(
          "partials", config_.num_attention_heads * of_attention(attends()).splits * (config_.head_dim + 4), layers);
    }
    for (std::uint32_t i = 0; i < ffns_.further(); ++i) {
      further_[i].gated = reserve(i == 0 ? "gated further" : "gated last", config_.intermediate_size, layers);
      further_[i].stream = reserve(i == 0 ? "after an FFN" : "after a second FFN", config_.hidden_size, layers);
    }
    layers_bytes_ = arena_bytes;
    if (cooperative()) {  // all values except those that the prologue writes
      blank_offset = stream_.offset + stream_.layer_stride;
      blank_bytes = layers_bytes_ - blank_offset;
    }
    reserve_after();
  }
  constexpr void bind() {
    operand first = stream_;
    first.layer_stride = 0;
    move(prologue[0], kernels::push_ids<kernels::embed_kernel>.output, first);
    const auto in_out = [](dispatch& d, operand in, operand out, const operand* added) {
      const std::uint64_t old_out = d[at_product.output].offset;  // also the offset of the value added
      d[at_product.input] = in, d[at_product.output] = out;
      for (std::size_t i = 0; i < d.access_count; ++i) {
        access& a = d.accesses[i];
        if (a.where != region::arena) continue;
        const operand& to = a.write ? out : added != nullptr && a.offset == old_out ? *added : in;
        a.offset = to.offset, a.layer_stride = to.layer_stride;
      }
    };
    // An FFN before attention writes the stream that the attention sublayer reads. The last FFN writes the stream of
    // the next layer.
    const operand& first_stream = ffns_.before != 0 ? further_[0].stream : stream_;
    const further_ffn& late = further_[ffns_.before];
    const operand& after_first = ffns_.after > 1 ? late.stream : next_;
    if (ffns_.before != 0) {
      in_out(period[0], stream_, further_[0].gated, nullptr);
      in_out(period[1], further_[0].gated, further_[0].stream, &stream_);
    }
    in_out(qkv(), first_stream, query_, nullptr);
    const std::uint64_t partials_offset =
        attends()[at_attention.partials].offset;  // a copy of the operand crashes g++ 13
    for (std::size_t i = 0; i < attends().access_count; ++i) {
      access& a = attends().accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = has_partials() && a.offset == partials_offset ? partials_ : a.write ? attended_ : query_;
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    for (dispatch* d : {&qkv(), &attends()})
      for (std::size_t i = 0; i < d->access_count; ++i)
        if (access& a = d->accesses[i]; a.where == region::arena && a.offset == query_.offset)
          a.bytes = std::uint64_t{4} * query_width();
    attends()[at_attention.query] = query_, attends()[at_attention.output] = attended_;
    if (has_partials()) attends()[at_attention.partials] = partials_;
    const std::size_t at = first_step();
    in_out(period[at + 2], attended_, middle_, &first_stream);
    in_out(period[at + 3], middle_, gated_, nullptr);
    in_out(period[at + 4], gated_, after_first, &middle_);
    if (ffns_.after > 1) {
      in_out(period[at + 5], late.stream, late.gated, nullptr);
      in_out(period[at + 6], late.gated, next_, &late.stream);
    }
    for (dispatch& each : epilogue) move_after(each);
    add_arguments(late, after_first);
  }
  /// @param late the second FFN after attention  @param after_first the stream after the first one
  constexpr void add_arguments(const further_ffn& late, const operand& after_first) {
    const std::size_t at = first_step();
    arguments = {stream_,    qkv()[at_product.keys], qkv()[at_product.values], query_, attended_, middle_, gated_,
                 after_first};
    const auto weights = [&](const dispatch& d) {
      for (const auto id : {at_product.norm_weight, at_product.weight, at_product.scales}) arguments.push_back(d[id]);
    };
    for (const std::size_t i : {0u, 2u, 3u, 4u}) weights(period[at + i]);
    arguments.push_back(partials_);
    const auto further = [&](const operand& gated, const operand& out, std::size_t its) {
      arguments.insert(arguments.end(), {gated, out});
      weights(period[its]), weights(period[its + 1]);
    };
    if (ffns_.before != 0) further(further_[0].gated, further_[0].stream, 0);
    if (ffns_.after > 1) further(late.gated, next_, at + 5);
  }

  constexpr void add_dispatch(std::uint32_t spin_limit) {
    dispatch d{.kernel = kernel::layers, .barrier = true, .subgroups = target_.work.layers_subgroups};
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    constexpr auto at = kernels::push_ids<kernels::layers_kernel>;
    d[at.arguments] = {region::arguments};
    d[at.progress] = {region::state, 0, counters_end_};
    d[at.state] = {region::state};
    note(region::arguments, false, 0, std::uint64_t{8} * arguments.size() * config_.num_hidden_layers);
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, 16 * 4);
    note(region::arena, true, 0, layers_bytes_);
    for (std::size_t i = 0; i < qkv().access_count; ++i)
      if (const access& a = qkv().accesses[i]; a.where == region::keys || a.where == region::values)
        note(a.where, true, 0, a.bytes);
    const auto first = of_product(qkv());
    kernels::store(kernels::layers_kernel::constants{.hidden_size = config_.hidden_size,
                                                     .intermediate_size = config_.intermediate_size,
                                                     .layers = config_.num_hidden_layers,
                                                     .parts = parts_,
                                                     .eps = first.eps,
                                                     .spin_limit = spin_limit,
                                                     .head_dim = config_.head_dim,
                                                     .heads = config_.num_attention_heads,
                                                     .kv_heads = config_.num_key_value_heads,
                                                     .context = context_,
                                                     .rope_theta = first.rope_theta,
                                                     .cache_element = first.cache_element,
                                                     .heads_together = of_attention(attends()).heads_together,
                                                     .ffns_before = ffns_.before,
                                                     .ffns_after = ffns_.after},
                   d.specialization);
    d.activation = period.end()[-2].activation;
    d.groups = {parts_, 1, 1};
    if (cooperative())
      d.least_groups = least_resident(parts_, [&, element = of_product(qkv()).cache_element](std::uint32_t n) {
        return resident_fits(config_, element, n, context_, ffns_);
      });
    for (const auto& each : period) d.weight_bytes += config_.num_hidden_layers * each.weight_bytes;
    resident.push_back(d);
  }

  /// Adds the form with attention's tasks arranged for long contexts.
  constexpr void add_long() {
    dispatch d = resident[0];
    long_from = resident_long_from(config_, parts_);
    change_constants<kernels::layers_kernel>(
        d, [&](auto& c) { c.heads_together = config_.num_attention_heads / config_.num_key_value_heads; });
    d.least_groups = least_resident(parts_, [&, element = of_product(qkv()).cache_element](std::uint32_t n) {
      return resident_fits(config_, element, n, context_, ffns_) && resident_long_fits(config_, n, context_, ffns_);
    });
    d.label.append(", from position ", long_from);
    resident_long.push_back(d);
  }
};

}  // namespace intaglio::plan
