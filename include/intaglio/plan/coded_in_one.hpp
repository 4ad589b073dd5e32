// SPDX-License-Identifier: MIT
// Decode of coded weights with all layers in one dispatch (kernels::layers_coded_interface), made from the chain of
// dispatches where each kind of block is what that kernel does: four products and attention of a Llama, with biases of
// q, k and v (Qwen2), with norms of q's and k's heads (Qwen3), or with these and norms before additions to the stream
// (Gemma-3).
#pragma once

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/in_one.hpp"

namespace intaglio::plan {

class coded_layers_in_one : public layers_in_one {
 public:
  constexpr coded_layers_in_one(const decoder_config& config, const profile& target, std::uint32_t context,
                                std::uint64_t counters_end, const layer_pattern& pattern)
      : layers_in_one(config, target, context, counters_end), pattern_(pattern) {}

  /// @return false where the profile wants none, a block is another one, or its shapes are none that the kernel has
  /// room for
  constexpr bool make(const std::vector<dispatch>& chain_prologue, const std::vector<dispatch>& chain_period,
                      const std::vector<dispatch>& chain_epilogue) {
    prologue = chain_prologue, period = chain_period, epilogue = chain_epilogue;
    if (target_.layers_parts == 0 || !resident() || !fits()) return false;
    parts_ = workgroups();
    place_values();
    for (std::uint32_t kind = 0; kind < pattern_.kinds(); ++kind) bind(kind * steps_);
    operand first = stream_;
    first.layer_stride = 0;
    move(prologue[0], "output", first);
    blank_beside();
    for (dispatch& each : epilogue) move_behind(each);
    add_dispatch();
    return true;
  }

 private:
  constexpr bool coded(const dispatch& d, bool normalises, kernels::epilogue how, std::uint32_t columns,
                       std::uint32_t rows) const {
    return d.kernel == kernel::matmul &&
           constant(d, "prologue") ==
               static_cast<std::uint32_t>(normalises ? kernels::prologue::norm : kernels::prologue::plain) &&
           constant(d, "epilogue") == static_cast<std::uint32_t>(how) && constant(d, "columns") == columns &&
           constant(d, "rows") == rows && constant(d, "experts_used") == 0 &&
           constant(d, "codec") == constant(period[0], "codec") &&
           (!normalises || constant(d, "eps") == constant(period[0], "eps"));
  }
  /// Whether it is turn, with what the first layers' has.
  constexpr bool turns_alike(const dispatch& d) const {
    return turns_stacked(d) && constant(d, "norms") == constant(period[1], "norms") &&
           constant(d, "biased") == constant(period[1], "biased") &&
           (!head_norms_ || constant(d, "eps") == constant(period[0], "eps"));
  }
  constexpr bool adds_normalised(const dispatch& d) const {
    return d.kernel == kernel::norm_add && constant(d, "biased") == 0 && constant(d, "width") == config_.hidden_size &&
           constant(d, "eps") == constant(period[0], "eps");
  }

  /// Indices within a block.
  constexpr std::size_t attention_step() const { return turns_ ? 2 : 1; }
  constexpr std::size_t projection_step() const { return attention_step() + 1; }
  constexpr std::size_t gated_step() const { return projection_step() + (inner_norms_ ? 2 : 1); }
  constexpr std::size_t down_step() const { return gated_step() + 1; }

  /// Where weights are multiplied as they are, as few as take no more turns for gate and up, all of them full (132: 128
  /// for Gemma-3 4B); by blocks all that there are (docs/performance.md).
  constexpr std::uint32_t workgroups() const {
    const std::uint32_t all = target_.layers_parts, subgroups = kernels::layers_coded::resident_subgroups,
                        rows = config_.intermediate_size;
    if (constant(period[0], "codec") > static_cast<std::uint32_t>(kernels::codec::bf16)) return all;
    const std::uint32_t turns = (rows + all * subgroups - 1) / (all * subgroups),
                        fewer = (rows + turns * subgroups - 1) / (turns * subgroups);
    return 32 * fewer >= 31 * all ? fewer : all;
  }

  constexpr bool fits() {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size, kinds = pattern_.kinds();
    if (prologue.size() != 1 || prologue[0].kernel != kernel::embed || this->epilogue.size() != 2 ||
        this->epilogue.back().kernel != kernel::sample || kinds > 2)
      return false;
    if (this->epilogue[0].kernel != kernel::matmul && this->epilogue[0].kernel != kernel::dense_matmul) return false;
    if (period.empty() || period.size() % kinds != 0) return false;
    steps_ = period.size() / kinds;
    inner_norms_ = steps_ == 8;
    turns_ = steps_ != 5;
    if (steps_ != 5 && steps_ != 6 && steps_ != 8) return false;
    if (turns_ && !turns_stacked(period[1])) return false;
    head_norms_ = turns_ && constant(period[1], "norms") != 0;
    biased_ = turns_ && constant(period[1], "biased") != 0;
    // The last layer of a pattern sees all positions, the others a window of them.
    std::uint32_t ring = 0;
    if (!pattern_.ends_each_period()) return false;
    if (kinds == 2) {
      const dispatch& of_window = period[attention_step()];
      if (of_window.kernel != kernel::attention || constant(of_window, "window") == 0) return false;
      ring = constant(of_window, "context");  // or all positions, where the context is no longer
      if ((constant(of_window, "ring") != 0) == (ring == context_)) return false;
    }
    for (std::uint32_t kind = 0; kind < kinds; ++kind) {
      const auto at = [&](std::size_t step) -> const dispatch& { return period[kind * steps_ + step]; };
      const std::uint32_t qkv = config_.q_size() + 2 * config_.kv_size();
      if (!coded(at(0), true, turns_ ? epilogue::store : epilogue::rope_cache, hidden, qkv)) return false;
      const dispatch& attends = at(attention_step());
      if (attends.kernel != kernel::attention || !has_plain_scores(attends) ||
          constant(attends, "cache_element") != static_cast<std::uint32_t>(kernels::element::f16) ||
          constant(attends, "scale") != constant(period[attention_step()], "scale"))
        return false;
      const bool sees_all = kind + 1 == kinds;
      if (sees_all && (constant(attends, "window") != 0 || constant(attends, "ring") != 0 ||
                       constant(attends, "context") != context_))
        return false;
      if (turns_ && !turns_alike(at(1))) return false;
      if (inner_norms_ && (!adds_normalised(at(4)) || !adds_normalised(at(7)))) return false;
      const auto adds = inner_norms_ ? epilogue::store : epilogue::add;
      if (!coded(at(projection_step()), false, adds, config_.q_size(), hidden) ||
          !coded(at(gated_step()), true, epilogue::gated, hidden, 2 * ffn) ||
          !coded(at(down_step()), false, adds, ffn, hidden) ||
          at(gated_step()).activation != period[gated_step()].activation)
        return false;
    }
    ring_ = ring;
    return resident_coded_fits(config_, static_cast<kernels::codec>(constant(period[0], "codec")), head_norms_,
                               workgroups(), context_, ring);
  }

  constexpr void place_values() {
    const std::uint32_t layers = config_.num_hidden_layers;
    stream_ = place("stream", config_.hidden_size, layers + 1);
    middle_ = place("behind attention", config_.hidden_size, layers);
    query_ = place("query", config_.q_size() + 2 * config_.kv_size() + scores(), layers);
    attended_ = place("attention", config_.q_size(), layers);
    gated_ = place("gated", config_.intermediate_size, layers);
    if (turns_) turned_ = place("query, turned", config_.q_size(), layers);
    if (inner_norms_) {
      projected_ = place("projection", config_.hidden_size, layers);
      lowered_ = place("down", config_.hidden_size, layers);
    }
    std::uint32_t splits = 1;
    for (std::uint32_t kind = 0; kind < pattern_.kinds(); ++kind)
      splits = (std::max)(splits, constant(period[kind * steps_ + attention_step()], "splits"));
    if (splits > 1)
      partials_ =
          place("partials", config_.num_attention_heads * kernels::attention_spans(context_) * (config_.head_dim + 4),
                layers);
    layers_bytes_ = arena_bytes;
    blank_offset = stream_.offset + stream_.layer_stride;
    blank_bytes = layers_bytes_ - blank_offset;
    place_behind();
  }

  /// Whether workgroups share a head and exchange scores of positions, behind query, key and value.
  constexpr bool shares_heads(std::uint32_t workgroups) const {
    return inner_norms_ && kernels::layers_coded::attention_shares * config_.num_attention_heads <= workgroups;
  }
  constexpr std::uint32_t scores() const {
    const std::uint32_t heads = config_.num_attention_heads;
    return shares_heads(parts_) ? heads * kernels::attention_spans(context_) * kernels::attention_span : 0;
  }

  /// What layers write becomes blank beside the embedding and not before it, and of attention's partials those of the
  /// spans that the pass has.
  constexpr void blank_beside() {
    const bool partial = partials_.where == region::arena;
    const std::uint64_t span = std::uint64_t{4} * (config_.head_dim + 4),
                        row = kernels::attention_spans(context_) * span;
    if (partial && partials_.layer_stride != config_.num_attention_heads * row)
      return;  // heads' rows of two layers lie not as those of one
    dispatch& d = prologue[0];
    const auto set = [&](std::string_view name, std::uint64_t value) {
      d.specialization[kernels::embed_interface.specialization_index(name)] = static_cast<std::uint32_t>(value);
    };
    const auto fills = [&](std::string_view name, std::uint64_t offset, std::uint64_t bytes) {
      push(d, name) = {region::arena, 0, offset};
      d.accesses[d.access_count++] = {region::arena, true, 0, offset, bytes};
    };
    const std::uint64_t always = partial ? partials_.offset - blank_offset : blank_bytes;
    fills("blank", blank_offset, always);
    set("blank_quads", always / 16);
    if (partial) {
      fills("blank_spans", partials_.offset, blank_bytes - always);
      set("stretches", std::uint64_t{config_.num_hidden_layers} * config_.num_attention_heads);
      set("span_quads", span / 16);
      set("spans", kernels::attention_spans(context_));
      set("stretch_quads", row / 16);
    }
    d.subgroups = kernels::layers_coded::resident_subgroups;
    d.groups[0] = 1 + parts_;
  }

  /// Addresses of a dispatch's accesses to the arena, by what they were.
  static constexpr void between(dispatch& d, operand in, operand out, const operand* added) {
    const std::uint64_t old_out = push(d, "output").offset, old_in = push(d, "input").offset;
    for (std::size_t i = 0; i < d.access_count; ++i) {
      access& a = d.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = a.write ? out : added != nullptr && a.offset == old_out && old_out != old_in ? *added : in;
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    push(d, "input") = in, push(d, "output") = out;
  }
  /// Reads q, k and v, one behind the other, from `in`, and writes to `out`, in a dispatch of turn.
  static constexpr void turns(dispatch& d, operand in, operand out) {
    const std::uint64_t old_in = push(d, "q").offset;
    for (std::size_t i = 0; i < d.access_count; ++i) {
      access& a = d.accesses[i];
      if (a.where != region::arena) continue;
      a.offset = a.write ? out.offset : in.offset + (a.offset - old_in);
      a.layer_stride = a.write ? out.layer_stride : in.layer_stride;
    }
    for (const auto name : {"q", "k", "v"}) {
      operand& o = push(d, name);
      o.offset = in.offset + (o.offset - old_in), o.layer_stride = in.layer_stride;
    }
    push(d, "output") = out;
  }

  constexpr void bind(std::size_t first) {
    const auto at = [&](std::size_t step) -> dispatch& { return period[first + step]; };
    dispatch& qkv = at(0);
    between(qkv, stream_, query_, nullptr);
    for (std::size_t i = 0; i < qkv.access_count; ++i)
      if (access& a = qkv.accesses[i]; a.where == region::arena && a.write)
        a.bytes = std::uint64_t{4} * (config_.q_size() + 2 * config_.kv_size());
    if (turns_) turns(at(1), query_, turned_);
    dispatch& attends = at(attention_step());
    const bool splits = constant(attends, "splits") > 1;
    const std::uint64_t told = push(attends, "partials").offset;
    for (std::size_t i = 0; i < attends.access_count; ++i) {
      access& a = attends.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = splits && a.offset == told ? partials_ : a.write ? attended_ : turns_ ? turned_ : query_;
      if (splits && a.offset == told)
        a.bytes = std::uint64_t{4} * config_.num_attention_heads * kernels::attention_spans(context_) *
                  (config_.head_dim + 4);
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    push(attends, "query") = turns_ ? turned_ : query_, push(attends, "output") = attended_;
    if (splits) push(attends, "partials") = partials_;
    if (inner_norms_) {
      between(at(projection_step()), attended_, projected_, nullptr);
      between(at(projection_step() + 1), projected_, middle_, &stream_);
      between(at(gated_step()), middle_, gated_, nullptr);
      between(at(down_step()), gated_, lowered_, nullptr);
      between(at(down_step() + 1), lowered_, next_, &middle_);
    } else {
      between(at(projection_step()), attended_, middle_, &stream_);
      between(at(gated_step()), middle_, gated_, nullptr);
      between(at(down_step()), gated_, next_, &middle_);
    }

    // kernels::layers, and kernels::layers_coded where it differs. With inner norms what crosses workgroups has not been normalised.
    const operand none{};
    const auto list = {stream_,
                       push(first_with_cache(first), "keys"),
                       push(first_with_cache(first), "values"),
                       query_,
                       attended_,
                       inner_norms_ ? projected_ : middle_,
                       gated_,
                       inner_norms_ ? lowered_ : next_,
                       push(qkv, "norm_weight"),
                       push(qkv, "weight"),
                       push(first_with_cache(first), "rope"),
                       head_norms_ ? push(at(1), "k_norm") : none,
                       push(at(projection_step()), "weight"),
                       inner_norms_ ? push(at(projection_step() + 1), "norm_weight") : none,
                       push(at(gated_step()), "norm_weight"),
                       push(at(gated_step()), "weight"),
                       head_norms_ ? push(at(1), "q_norm") : none,
                       inner_norms_ ? next_ : none,
                       push(at(down_step()), "weight"),
                       inner_norms_ ? push(at(down_step() + 1), "norm_weight") : none,
                       partials_,
                       biased_ ? push(at(1), "bias") : none};
    arguments.insert(arguments.end(), list.begin(), list.end());
  }
  /// The dispatch that writes the caches.
  constexpr dispatch& first_with_cache(std::size_t first) { return period[first + (turns_ ? 1 : 0)]; }

  constexpr void add_dispatch() {
    dispatch d{.kernel = kernel::layers_coded, .barrier = true, .subgroups = kernels::layers_coded::resident_subgroups};
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    push(d, "arguments") = {region::arguments};
    push(d, "progress") = {region::state, 0, counters_end_};
    push(d, "state") = {region::state};
    note(region::arguments, false, 0, kernels::layers_coded::argument_bytes(config_.num_hidden_layers));
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, 16 * 4);
    note(region::arena, true, 0, layers_bytes_);
    const dispatch& caches = first_with_cache(0);
    for (std::size_t i = 0; i < caches.access_count; ++i)
      if (const access& a = caches.accesses[i]; a.where == region::keys || a.where == region::values)
        note(a.where, true, 0, a.bytes);
    const auto set = [&](std::string_view name, std::uint32_t value) {
      d.specialization[kernels::layers_coded_interface.specialization_index(name)] = value;
    };
    const bool windows = pattern_.kinds() == 2;
    set("hidden_size", config_.hidden_size);
    set("intermediate_size", config_.intermediate_size);
    set("layers", config_.num_hidden_layers);
    set("parts", parts_);
    set("eps", constant(period[0], "eps"));
    set("patience", resident_patience);
    set("head_dim", config_.head_dim);
    set("heads", config_.num_attention_heads);
    set("kv_heads", config_.num_key_value_heads);
    set("context", context_);
    set("codec", constant(period[0], "codec"));
    set("inner_norms", inner_norms_ ? 1 : 0);
    set("head_norms", head_norms_ ? 1 : 0);
    set("biased", biased_ ? 1 : 0);
    set("scale", constant(period[attention_step()], "scale"));
    set("window", windows ? constant(period[attention_step()], "window") : 0);
    set("ring", windows ? constant(period[attention_step()], "context") : 256);
    set("full_every", windows ? pattern_.period : 1);
    d.activation = period[gated_step()].activation;
    d.groups = {parts_, 1, 1};
    const auto codec = static_cast<kernels::codec>(constant(period[0], "codec"));
    d.least_groups = least_resident(parts_, [&](std::uint32_t n) {
      return shares_heads(n) == shares_heads(parts_) &&
             resident_coded_fits(config_, codec, head_norms_, n, context_, ring_);
    });
    for (std::uint32_t layer = 0; layer < config_.num_hidden_layers; ++layer)
      for (std::size_t i = 0; i < steps_; ++i) d.weight_bytes += period[pattern_(layer) * steps_ + i].weight_bytes;
    in_one.push_back(d);
  }

  layer_pattern pattern_;
  std::size_t steps_ = 0;
  std::uint32_t ring_ = 0;
  bool turns_ = false, head_norms_ = false, biased_ = false, inner_norms_ = false;
  operand turned_, projected_, lowered_;
};

}  // namespace intaglio::plan
