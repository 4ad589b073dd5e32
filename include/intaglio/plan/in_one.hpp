// SPDX-License-Identifier: MIT
// Decode with all layers in one dispatch (kernels::layers_interface), made from the chain of dispatches where its
// period is what that kernel does. Every step writes bytes of its own in every layer, so that a step may be done twice,
// by any workgroup, and late, and so that what is there shows.
#pragma once

#include <vector>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/plan/place.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/resident.hpp"

namespace intaglio::plan {

/// llvmpipe ends every loop of an invocation once all of them together have turned this often
/// (LP_MAX_TGSI_LOOP_ITERATIONS).
inline constexpr std::uint64_t llvmpipe_loop_turns = 65535;

/// Makes the sequence out of a chain for one token.
class layers_in_one {
 public:
  constexpr layers_in_one(const decoder_config& config, const profile& target, std::uint32_t context,
                          std::uint64_t counters_end)
      : config_(config), target_(target), context_(context), counters_end_(counters_end) {}

  std::vector<dispatch> prologue, period, epilogue, in_one, in_one_long;
  std::uint32_t long_from = 0;
  std::vector<placed_value> values;
  std::vector<operand> arguments;
  std::uint64_t arena_bytes = 0, residual_offset = 0, logits_offset = 0, blank_offset = 0, blank_bytes = 0;

  /// @return false where the profile wants none, the period is another one, llvmpipe would end its loops too early, or
  /// a GPU's workgroups are too small
  constexpr bool make(const std::vector<dispatch>& chain_prologue, const std::vector<dispatch>& chain_period,
                      const std::vector<dispatch>& chain_epilogue) {
    prologue = chain_prologue, period = chain_period, epilogue = chain_epilogue;
    if (target_.layers_parts == 0 || !fits()) return false;
    if (resident()) {
      if (!resident_fits(config_, constant(period[0], "cache_element"), target_.layers_parts, context_)) return false;
      parts_ = target_.layers_parts;
      place_values();
      bind();
      add_dispatch(resident_patience);
      if (resident_long_fits(config_, parts_, context_)) add_long();
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

 protected:
  using kernel = kernels::kernel;

  static constexpr std::uint32_t constant(const dispatch& d, std::string_view name) {
    return d.specialization[kernels::interface_of(d.kernel).specialization_index(name)];
  }
  static constexpr operand& push(dispatch& d, std::string_view name) {
    return d.push[kernels::interface_of(d.kernel).push_index(name)];
  }

  /// Whether the head reads what a dispatch of its own normalised.
  constexpr bool normalises_first() const { return epilogue[0].kernel == kernel::rms_norm; }
  constexpr bool resident() const { return target_.layers_subgroups > 1; }

  constexpr bool product(const dispatch& d, kernels::epilogue how, std::uint32_t columns, std::uint32_t rows) const {
    return d.kernel == kernel::ternary_matmul &&
           constant(d, "prologue") == static_cast<std::uint32_t>(kernels::prologue::norm_quantize) &&
           constant(d, "epilogue") == static_cast<std::uint32_t>(how) && constant(d, "columns") == columns &&
           constant(d, "rows") == rows && (resident() || d.subgroups == 1);
  }

  constexpr bool fits() const {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size;
    if (prologue.size() != 1 || prologue[0].kernel != kernel::embed || period.size() != kernels::layers::steps)
      return false;
    if (this->epilogue.size() < 2 || this->epilogue.back().kernel != kernel::sample) return false;
    if (this->epilogue.size() != (this->epilogue[0].kernel == kernel::head_screen || normalises_first() ? 3u : 2u))
      return false;
    if (!product(period[0], epilogue::rope_cache, hidden, config_.q_size() + 2 * config_.kv_size()) ||
        period[1].kernel != kernel::attention || !has_plain_scores(period[1]) ||
        (!resident() && constant(period[1], "splits") != 1) ||
        !product(period[2], epilogue::add, config_.q_size(), hidden) ||
        !product(period[3], epilogue::gated, hidden, 2 * ffn) || !product(period[4], epilogue::add, ffn, hidden))
      return false;
    for (const std::size_t i : {2u, 3u, 4u})
      if (constant(period[i], "eps") != constant(period[0], "eps")) return false;
    return true;
  }

  constexpr std::uint32_t choose_parts() const {
    std::uint64_t largest = 0;
    for (const auto& d : period)
      if (d.kernel == kernel::ternary_matmul)
        largest = (std::max)(largest, std::uint64_t{constant(d, "columns")} * constant(d, "rows"));
    const std::uint64_t busy = target_.group_weights == 0 ? target_.layers_parts : largest / target_.group_weights;
    return static_cast<std::uint32_t>(
        (std::min<std::uint64_t>)(target_.layers_parts, (std::max<std::uint64_t>)(2, busy)));
  }

  /// Turns of all loops of a workgroup that does a whole layer alone, in subgroups of 4, the narrowest.
  constexpr std::uint64_t turns_of_layer() const {
    std::uint64_t out = 0;
    for (const auto& d : period)
      if (d.kernel == kernel::ternary_matmul) {
        const std::uint64_t columns = constant(d, "columns"), tiles = columns / 16, groups = constant(d, "rows") / 4,
                            blocks = (columns + 127) / 128;
        const std::uint64_t norm = 2 * blocks + 8 * (blocks / 32 + 1) + tiles / 4 + 4;
        out += parts_ * norm + (groups / 16 + parts_) * (tiles + 8);
      }
    const std::uint64_t span_turns = kernels::attention_span / 4 + kernels::attention_span / 8 + 8;
    out += config_.num_attention_heads / (std::max)(1u, constant(period[1], "heads_together")) *
           (kernels::attention_spans(context_) * span_turns + 4);
    return out + 16;
  }

  /// A value with a place in each of `count` layers.
  constexpr operand place(std::string_view name, std::uint32_t width, std::uint32_t count) {
    const std::uint64_t stride = aligned(std::uint64_t{4} * width);
    const operand out{region::arena, 0, arena_bytes, stride};
    values.push_back({text<32>{name}, dtype::f32, width, arena_bytes, stride * count, 0,
                      static_cast<std::uint32_t>(prologue.size() + period.size() + epilogue.size())});
    arena_bytes += stride * count;
    return out;
  }

  /// Resident workgroups hand on key and value of the position with the query.
  constexpr std::uint32_t query_width() const { return config_.q_size() + (resident() ? 2 * config_.kv_size() : 0); }
  constexpr bool has_partials() const { return constant(period[1], "splits") > 1; }

  constexpr void place_values() {
    const std::uint32_t layers = config_.num_hidden_layers;
    stream_ = place("stream", config_.hidden_size, layers + 1);
    middle_ = place("behind attention", config_.hidden_size, layers);
    query_ = place("query", query_width(), layers);
    attended_ = place("attention", config_.q_size(), layers);
    gated_ = place("gated", config_.intermediate_size, layers);
    if (has_partials()) {
      partials_ = place("partials",
                        config_.num_attention_heads * constant(period[1], "splits") * (config_.head_dim + 4), layers);
    }
    layers_bytes_ = arena_bytes;
    if (resident()) {  // all but what the prologue writes
      blank_offset = stream_.offset + stream_.layer_stride;
      blank_bytes = layers_bytes_ - blank_offset;
    }
    place_behind();
  }
  /// What the dispatches behind the layers have.
  constexpr void place_behind() {
    const std::uint32_t layers = config_.num_hidden_layers;
    logits_ = place("logits", config_.vocab_size, 1);
    scratch_ =
        place("sample scratch", static_cast<std::uint32_t>(kernels::sample_scratch_bytes(config_.vocab_size) / 4), 1);
    if (const std::uint32_t count = constant(epilogue.back(), "first_count"); count != 0) {
      firsts_ = place("first tokens", 2 * count, 1);
      if (epilogue[0].kernel == kernel::head_screen) {
        normalised_ = place("normalised", config_.hidden_size, 1);
        lowest_ = place("lowest of the largest", count, 1);
      }
    }
    if (normalises_first()) normalised_ = place("normalised", config_.hidden_size, 1);
    next_ = stream_;
    next_.offset += stream_.layer_stride;
    last_ = stream_;
    last_.offset += layers * stream_.layer_stride;
    last_.layer_stride = logits_.layer_stride = scratch_.layer_stride = 0;
    residual_offset = last_.offset;
    logits_offset = logits_.offset;
  }

  /// Moves an address and the bytes stated for it.
  static constexpr void move(dispatch& d, std::string_view name, operand to) {
    operand& from = push(d, name);
    for (std::size_t i = 0; i < d.access_count; ++i) {
      access& a = d.accesses[i];
      if (a.where == from.where && a.slot == from.slot && a.offset == from.offset)
        a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    from = to;
  }
  /// Moves what a dispatch behind the layers has in the arena.
  constexpr void move_behind(dispatch& d) {
    const kernels::kernel_interface& face = kernels::interface_of(d.kernel);
    std::array<bool, max_accesses> moved{};
    for (std::size_t i = 0; i < face.push_count(); ++i) {
      operand& from = d.push[i];
      if (from.where != region::arena) continue;
      const std::string_view name = face.push[i].name;
      const bool between =
          d.kernel == kernel::rms_norm ? name == "output" : d.kernel == kernel::dense_rows && name == "input";
      const std::uint64_t to = between             ? normalised_.offset
                               : name == "input"   ? last_.offset
                               : name == "firsts"  ? firsts_.offset
                               : name == "y"       ? normalised_.offset
                               : name == "lowest"  ? lowest_.offset
                               : name == "scratch" ? scratch_.offset
                                                   : logits_.offset;
      for (std::size_t k = 0; k < d.access_count; ++k) {
        access& a = d.accesses[k];
        if (moved[k] || a.where != region::arena || a.offset != from.offset) continue;
        a.offset = to;
        moved[k] = true;
      }
      from.offset = to;
    }
  }
  constexpr void bind() {
    operand first = stream_;
    first.layer_stride = 0;
    move(prologue[0], "output", first);
    const auto in_out = [](dispatch& d, operand in, operand out, const operand* added) {
      const std::uint64_t old_out = push(d, "output").offset;  // what is added was read there too
      push(d, "input") = in, push(d, "output") = out;
      for (std::size_t i = 0; i < d.access_count; ++i) {
        access& a = d.accesses[i];
        if (a.where != region::arena) continue;
        const operand& to = a.write ? out : added != nullptr && a.offset == old_out ? *added : in;
        a.offset = to.offset, a.layer_stride = to.layer_stride;
      }
    };
    in_out(period[0], stream_, query_, nullptr);
    const std::uint64_t told =
        push(period[1], "partials").offset;  // no copy of the operand: g++ 13 breaks down over it
    for (std::size_t i = 0; i < period[1].access_count; ++i) {
      access& a = period[1].accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = has_partials() && a.offset == told ? partials_ : a.write ? attended_ : query_;
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    for (dispatch* d : {&period[0], &period[1]})
      for (std::size_t i = 0; i < d->access_count; ++i)
        if (access& a = d->accesses[i]; a.where == region::arena && a.offset == query_.offset)
          a.bytes = std::uint64_t{4} * query_width();
    push(period[1], "query") = query_, push(period[1], "output") = attended_;
    if (has_partials()) push(period[1], "partials") = partials_;
    in_out(period[2], attended_, middle_, &stream_);
    in_out(period[3], middle_, gated_, nullptr);
    in_out(period[4], gated_, next_, &middle_);
    for (dispatch& each : epilogue) move_behind(each);

    arguments = {stream_, push(period[0], "keys"), push(period[0], "values"), query_, attended_, middle_, gated_,
                 next_};
    for (const std::size_t i : {0u, 2u, 3u, 4u})
      for (const auto name : {"norm_weight", "weight", "scales"}) arguments.push_back(push(period[i], name));
    arguments.push_back(partials_);
  }

  constexpr void add_dispatch(std::uint32_t patience) {
    dispatch d{.kernel = kernel::layers, .barrier = true, .subgroups = target_.layers_subgroups};
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    push(d, "arguments") = {region::arguments};
    push(d, "progress") = {region::state, 0, counters_end_};
    push(d, "state") = {region::state};
    note(region::arguments, false, 0, kernels::layers::argument_bytes(config_.num_hidden_layers));
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, 16 * 4);
    note(region::arena, true, 0, layers_bytes_);
    for (std::size_t i = 0; i < period[0].access_count; ++i)
      if (const access& a = period[0].accesses[i]; a.where == region::keys || a.where == region::values)
        note(a.where, true, 0, a.bytes);
    const auto set = [&](std::string_view name, std::uint32_t value) {
      d.specialization[kernels::layers_interface.specialization_index(name)] = value;
    };
    set("hidden_size", config_.hidden_size);
    set("intermediate_size", config_.intermediate_size);
    set("layers", config_.num_hidden_layers);
    set("parts", parts_);
    set("eps", constant(period[0], "eps"));
    set("patience", patience);
    set("head_dim", config_.head_dim);
    set("heads", config_.num_attention_heads);
    set("kv_heads", config_.num_key_value_heads);
    set("context", context_);
    set("rope_theta", constant(period[0], "rope_theta"));
    set("cache_element", constant(period[0], "cache_element"));
    set("heads_together", constant(period[1], "heads_together"));
    d.activation = period[3].activation;
    d.groups = {parts_, 1, 1};
    if (resident())
      d.least_groups = least_resident(parts_, [&, element = constant(period[0], "cache_element")](std::uint32_t n) {
        return resident_fits(config_, element, n, context_);
      });
    for (const auto& each : period) d.weight_bytes += config_.num_hidden_layers * each.weight_bytes;
    in_one.push_back(d);
  }

  /// The same with attention's tasks laid out for long contexts.
  constexpr void add_long() {
    dispatch d = in_one[0];
    long_from = resident_long_from(config_, parts_);
    d.specialization[kernels::layers_interface.specialization_index("heads_together")] =
        config_.num_attention_heads / config_.num_key_value_heads;
    d.least_groups = least_resident(parts_, [&, element = constant(period[0], "cache_element")](std::uint32_t n) {
      return resident_fits(config_, element, n, context_) && resident_long_fits(config_, n, context_);
    });
    d.label.append(", from position ", long_from);
    in_one_long.push_back(d);
  }

  const decoder_config& config_;
  const profile& target_;
  std::uint32_t context_, parts_ = 2;
  std::uint64_t counters_end_, layers_bytes_ = 0;
  operand stream_, middle_, query_, attended_, gated_, partials_, logits_, scratch_, firsts_, normalised_, lowest_,
      next_, last_;
};

}  // namespace intaglio::plan
