// SPDX-License-Identifier: MIT
// Decode of coded weights with all layers in one dispatch (kernels::layers_coded_interface), made from the chain of
// dispatches where each kind of block is what that kernel does: four products and attention of a Llama, with biases of
// q, k and v (Qwen2), with norms of q's and k's heads (Qwen3), or with these and norms before additions to the stream
// (Gemma-3). Matrices may be held in several codecs (Q4_K_M): q and k in one, v in the same or in another one, gate and
// up, attention's projection, and the down projection each in one, the last in some layers in another one.
#pragma once

#include <bit>
#include <optional>

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
    for (const block_steps& each : blocks_) bind(each);
    operand first = stream_;
    first.layer_stride = 0;
    move(prologue[0], "output", first);
    blank_beside();
    for (dispatch& each : epilogue) move_behind(each);
    add_dispatch();
    return true;
  }

 private:
  static constexpr std::size_t nowhere = ~std::size_t{0};
  /// A kind of block: where in the period its dispatches are. v: where it is a product of its own beside q and k.
  struct block_steps {
    std::size_t first = 0, end = 0, qkv = nowhere, v = nowhere, turn = nowhere, attends = nowhere, projection = nowhere,
                behind_projection = nowhere, gated = nowhere, down = nowhere, behind_down = nowhere;
    constexpr bool apart() const { return v != nowhere; }
  };
  /// Names the dispatches of a kind in their order, whatever they compute. @return whether none is left or missing
  constexpr bool find_steps(std::uint8_t kind, block_steps& out) const {
    while (out.first < period.size() && period[out.first].block != kind) ++out.first;
    out.end = out.first;
    while (out.end < period.size() && period[out.end].block == kind) ++out.end;
    std::size_t at = out.first;
    const auto take = [&](std::size_t& step, kernel wanted) {
      if (at < out.end && period[at].kernel == wanted) step = at++;
    };
    take(out.qkv, kernel::matmul);
    take(out.v, kernel::matmul);
    take(out.turn, kernel::turn);
    take(out.attends, kernel::attention);
    take(out.projection, kernel::matmul);
    take(out.behind_projection, kernel::norm_add);
    take(out.gated, kernel::matmul);
    take(out.down, kernel::matmul);
    take(out.behind_down, kernel::norm_add);
    return at == out.end && out.down != nowhere && out.attends != nowhere && out.projection != nowhere &&
           out.qkv != nowhere;
  }

  constexpr kernels::codec codec_of(std::size_t step) const {
    return static_cast<kernels::codec>(constant(period[step], "codec"));
  }
  constexpr const dispatch& first_qkv() const { return period[blocks_[0].qkv]; }

  /// Takes a codec for a place that may have another one in some layers only: none yet, or the same.
  static constexpr bool takes(std::optional<kernels::codec>& place, kernels::codec its) {
    if (!place) place = its;
    return place == its;
  }
  constexpr bool product(const dispatch& d, bool normalises, kernels::epilogue how, std::uint32_t columns,
                         std::uint32_t rows) const {
    return d.kernel == kernel::matmul &&
           constant(d, "prologue") ==
               static_cast<std::uint32_t>(normalises ? kernels::prologue::norm : kernels::prologue::plain) &&
           constant(d, "epilogue") == static_cast<std::uint32_t>(how) && constant(d, "columns") == columns &&
           constant(d, "rows") == rows && constant(d, "experts_used") == 0 &&
           (!normalises || constant(d, "eps") == constant(first_qkv(), "eps"));
  }
  constexpr bool adds_normalised(const dispatch& d) const {
    return d.kernel == kernel::norm_add && constant(d, "biased") == 0 && constant(d, "width") == config_.hidden_size &&
           constant(d, "eps") == constant(first_qkv(), "eps");
  }

  /// Where weights are multiplied as they are, as few as take no more turns for gate and up, all of them full (132: 128
  /// for Gemma-3 4B); by blocks all that there are (docs/performance.md).
  constexpr std::uint32_t workgroups() const {
    const std::uint32_t all = target_.layers_parts, subgroups = kernels::layers_coded::resident_subgroups,
                        rows = config_.intermediate_size;
    if (codec_of(blocks_[0].gated) > kernels::codec::bf16) return all;
    const std::uint32_t turns = (rows + all * subgroups - 1) / (all * subgroups),
                        fewer = (rows + turns * subgroups - 1) / (turns * subgroups);
    return 32 * fewer >= 31 * all ? fewer : all;
  }
  constexpr kernels::layers_coded::codecs codecs() const {
    const kernels::codec down = down_ ? *down_ : *more_down_;
    return {codec_of(blocks_[0].qkv),
            values_.value_or(kernels::codec::f16),
            codec_of(blocks_[0].gated),
            *projection_,
            down,
            down_ ? more_down_.value_or(kernels::codec::f16) : kernels::codec::f16};
  }
  constexpr bool resident_fits_with(std::uint32_t workgroup_count) const {
    return resident_coded_fits(config_, codecs(), head_norms_, workgroup_count, context_, ring_);
  }

  /// Whether a kind's q, k and v come to attention as those of the first kind do.
  constexpr bool turns_alike(const block_steps& of) const {
    if ((of.turn != nowhere) != turns_) return false;
    if (of.turn == nowhere) return !of.apart();
    const dispatch& d = period[of.turn];
    const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization),
               first = kernels::constants_of<kernels::turn_kernel>(period[blocks_[0].turn].specialization);
    const std::uint32_t kv = config_.kv_size(), stacked = config_.q_size() + (of.apart() ? 1 : 2) * kv;
    return c.norms != kernels::turn_norms::all_heads && c.norms == first.norms && c.biased == first.biased &&
           c.rope_factor == first.rope_factor && (!head_norms_ || constant(d, "eps") == constant(first_qkv(), "eps")) &&
           c.q_stride == stacked && c.k_stride == stacked && c.v_stride == (of.apart() ? kv : stacked);
  }
  constexpr bool is_block(const block_steps& of) {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size, q = config_.q_size(),
                        kv = config_.kv_size();
    const auto at = [&](std::size_t step) -> const dispatch& { return period[step]; };
    const kernels::codec most = codec_of(blocks_[0].gated);
    const auto stored = of.turn != nowhere ? epilogue::store : epilogue::rope_cache;
    if (!product(at(of.qkv), true, stored, hidden, q + (of.apart() ? 1 : 2) * kv) ||
        codec_of(of.qkv) != codec_of(blocks_[0].qkv))
      return false;
    if (of.apart() && (!product(at(of.v), true, stored, hidden, kv) || !takes(values_, codec_of(of.v)))) return false;
    if (!turns_alike(of)) return false;
    const dispatch &attends = at(of.attends), &first = at(blocks_[0].attends);
    if (!has_plain_scores(attends) ||
        constant(attends, "cache_element") != static_cast<std::uint32_t>(kernels::element::f16) ||
        constant(attends, "scale") != constant(first, "scale"))
      return false;
    if ((of.behind_projection != nowhere) != inner_norms_ || (of.behind_down != nowhere) != inner_norms_) return false;
    if (inner_norms_ && (!adds_normalised(at(of.behind_projection)) || !adds_normalised(at(of.behind_down))))
      return false;
    const auto adds = inner_norms_ ? epilogue::store : epilogue::add;
    if (!product(at(of.projection), false, adds, q, hidden) || !takes(projection_, codec_of(of.projection)))
      return false;
    if (!product(at(of.gated), true, epilogue::gated, hidden, 2 * ffn) || codec_of(of.gated) != most ||
        at(of.gated).activation != at(blocks_[0].gated).activation)
      return false;
    // What most have comes first: a model of one codec then has no second one.
    return product(at(of.down), false, adds, ffn, hidden) &&
           takes(codec_of(of.down) == most || more_down_.value_or(codec_of(of.down)) != codec_of(of.down) ? down_
                                                                                                          : more_down_,
                 codec_of(of.down));
  }

  /// What attention of a layer sees, and how it turns.
  constexpr bool sees_alike(std::uint32_t layer, std::uint32_t other) {
    const block_steps &a = blocks_[pattern_(layer)], &b = blocks_[pattern_(other)];
    for (const auto name : {"window", "ring", "context"})
      if (constant(period[a.attends], name) != constant(period[b.attends], name)) return false;
    return push(first_with_cache(a), "rope") == push(first_with_cache(b), "rope");
  }
  /// Whether all layers see all positions, or the last of each so many; the others see one window of them, or all too
  /// and turn otherwise, as those that turn beside such that do not.
  constexpr bool finds_windows() {
    const std::uint32_t layers = config_.num_hidden_layers;
    full_every_ = 1;
    while (full_every_ < layers && sees_alike(full_every_, 0)) ++full_every_;
    full_every_ = full_every_ < layers ? full_every_ + 1 : 1;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const bool last = layer % full_every_ == full_every_ - 1;
      if (!sees_alike(layer, last ? full_every_ - 1 : 0)) return false;
    }
    const dispatch &full = period[blocks_[pattern_(full_every_ - 1)].attends],
                   &other = period[blocks_[pattern_(0)].attends];
    if (constant(full, "window") != 0 || constant(full, "ring") != 0 || constant(full, "context") != context_)
      return false;
    if (const std::uint32_t n = config_.no_rope_layer_interval; n != 0 && n <= layers) {
      // Tables of turns are each layer's own: every n-th has none, the others see all positions too.
      if (full_every_ != 1) return false;
      full_every_ = n, window_ = ring_ = context_;
      return true;
    }
    if (full_every_ == 1) return true;
    window_ = constant(other, "window"), ring_ = constant(other, "context");
    if (window_ == 0) window_ = context_;
    // A ring, or all positions where the context is no longer.
    return (constant(other, "ring") != 0) == (ring_ != context_);
  }

  constexpr bool fits() {
    const std::uint32_t kinds = pattern_.kinds();
    if (prologue.size() != 1 || prologue[0].kernel != kernel::embed || this->epilogue.size() != 2 ||
        this->epilogue.back().kernel != kernel::sample)
      return false;
    if (this->epilogue[0].kernel != kernel::matmul && this->epilogue[0].kernel != kernel::dense_matmul) return false;
    blocks_.resize(kinds);
    for (std::uint32_t kind = 0; kind < kinds; ++kind)
      if (!find_steps(static_cast<std::uint8_t>(kind), blocks_[kind])) return false;
    inner_norms_ = blocks_[0].behind_down != nowhere;
    turns_ = blocks_[0].turn != nowhere;
    head_norms_ = turns_ && constant(period[blocks_[0].turn], "norms") != 0;
    biased_ = turns_ && constant(period[blocks_[0].turn], "biased") != 0;
    for (const block_steps& each : blocks_)
      if (!is_block(each)) return false;
    if (!finds_windows()) return false;
    find_layers_of_others();
    return (!codecs().mixed() || config_.num_hidden_layers <= kernels::layers_coded::most_mixed_layers) &&
           resident_fits_with(workgroups());
  }
  /// A bit for each layer whose v is apart, or whose down projection is in the other codec.
  constexpr void find_layers_of_others() {
    for (std::uint32_t layer = 0; layer < config_.num_hidden_layers && layer < 64; ++layer) {
      const block_steps& its = blocks_[pattern_(layer)];
      if (its.apart()) values_apart_ |= std::uint64_t{1} << layer;
      if (codec_of(its.down) != codecs().down) layers_of_more_down_ |= std::uint64_t{1} << layer;
    }
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
    for (const block_steps& each : blocks_) splits = (std::max)(splits, constant(period[each.attends], "splits"));
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
  /// Likewise for turn, whose q, k and v lie behind each other.
  constexpr void turns(dispatch& d) const {
    const std::array<std::string_view, 3> names{"q", "k", "v"};
    const std::array<std::uint64_t, 3> behind{0, std::uint64_t{4} * config_.q_size(),
                                              std::uint64_t{4} * (config_.q_size() + config_.kv_size())};
    std::array<std::uint64_t, 3> old{};
    for (std::size_t i = 0; i < 3; ++i) old[i] = push(d, names[i]).offset;
    for (std::size_t k = 0; k < d.access_count; ++k) {
      access& a = d.accesses[k];
      if (a.where != region::arena) continue;
      const operand& to = a.write ? turned_ : query_;
      std::uint64_t from = 0;
      for (std::size_t i = 0; i < 3 && !a.write; ++i)
        if (a.offset == old[i]) from = behind[i];
      a.offset = to.offset + from, a.layer_stride = to.layer_stride;
    }
    for (std::size_t i = 0; i < 3; ++i) push(d, names[i]) = query_behind(behind[i]);
    push(d, "output") = turned_;
  }
  constexpr operand query_behind(std::uint64_t bytes) const {
    operand out = query_;
    out.offset += bytes;
    return out;
  }

  constexpr void bind_attention(const block_steps& of) {
    dispatch& qkv = period[of.qkv];
    between(qkv, stream_, query_, nullptr);
    const std::uint64_t behind = std::uint64_t{4} * (config_.q_size() + config_.kv_size());
    for (std::size_t i = 0; i < qkv.access_count; ++i)
      if (access& a = qkv.accesses[i]; a.where == region::arena && a.write)
        a.bytes = behind + (of.apart() ? 0 : std::uint64_t{4} * config_.kv_size());
    if (of.apart()) between(period[of.v], stream_, query_behind(behind), nullptr);
    if (of.turn != nowhere) turns(period[of.turn]);
    const operand& query = of.turn != nowhere ? turned_ : query_;
    dispatch& attends = period[of.attends];
    const bool splits = constant(attends, "splits") > 1;
    const std::uint64_t told = push(attends, "partials").offset;
    for (std::size_t i = 0; i < attends.access_count; ++i) {
      access& a = attends.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = splits && a.offset == told ? partials_ : a.write ? attended_ : query;
      if (splits && a.offset == told)
        a.bytes = std::uint64_t{4} * config_.num_attention_heads * kernels::attention_spans(context_) *
                  (config_.head_dim + 4);
      a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    push(attends, "query") = query, push(attends, "output") = attended_;
    if (splits) push(attends, "partials") = partials_;
  }
  constexpr void bind(const block_steps& of) {
    const auto at = [&](std::size_t step) -> dispatch& { return period[step]; };
    bind_attention(of);
    if (inner_norms_) {
      between(at(of.projection), attended_, projected_, nullptr);
      between(at(of.behind_projection), projected_, middle_, &stream_);
      between(at(of.gated), middle_, gated_, nullptr);
      between(at(of.down), gated_, lowered_, nullptr);
      between(at(of.behind_down), lowered_, next_, &middle_);
    } else {
      between(at(of.projection), attended_, middle_, &stream_);
      between(at(of.gated), middle_, gated_, nullptr);
      between(at(of.down), gated_, next_, &middle_);
    }

    // kernels::layers, and kernels::layers_coded where it differs. With inner norms what crosses workgroups has not been normalised.
    const operand none{};
    const auto list = {stream_,
                       push(first_with_cache(of), "keys"),
                       push(first_with_cache(of), "values"),
                       query_,
                       attended_,
                       inner_norms_ ? projected_ : middle_,
                       gated_,
                       inner_norms_ ? lowered_ : next_,
                       push(at(of.qkv), "norm_weight"),
                       push(at(of.qkv), "weight"),
                       push(first_with_cache(of), "rope"),
                       head_norms_ ? push(at(of.turn), "k_norm") : none,
                       push(at(of.projection), "weight"),
                       inner_norms_ ? push(at(of.behind_projection), "norm_weight") : none,
                       push(at(of.gated), "norm_weight"),
                       push(at(of.gated), "weight"),
                       head_norms_ ? push(at(of.turn), "q_norm") : none,
                       inner_norms_ ? next_ : none,
                       push(at(of.down), "weight"),
                       inner_norms_ ? push(at(of.behind_down), "norm_weight") : none,
                       partials_,
                       biased_ ? push(at(of.turn), "bias") : none,
                       of.apart() ? push(at(of.v), "weight") : none};
    arguments.insert(arguments.end(), list.begin(), list.end());
  }
  /// The dispatch that writes the caches.
  constexpr dispatch& first_with_cache(const block_steps& of) { return period[of.turn != nowhere ? of.turn : of.qkv]; }

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
    const dispatch& caches = first_with_cache(blocks_[0]);
    for (std::size_t i = 0; i < caches.access_count; ++i)
      if (const access& a = caches.accesses[i]; a.where == region::keys || a.where == region::values)
        note(a.where, true, 0, a.bytes);
    const auto set = [&](std::string_view name, std::uint32_t value) {
      d.specialization[kernels::layers_coded_interface.specialization_index(name)] = value;
    };
    const dispatch& first = period[blocks_[pattern_(0)].attends];
    set("hidden_size", config_.hidden_size);
    set("intermediate_size", config_.intermediate_size);
    set("layers", config_.num_hidden_layers);
    set("parts", parts_);
    set("eps", constant(first_qkv(), "eps"));
    set("patience", resident_patience);
    set("head_dim", config_.head_dim);
    set("heads", config_.num_attention_heads);
    set("kv_heads", config_.num_key_value_heads);
    set("context", context_);
    const kernels::layers_coded::codecs held = codecs();
    set("codec", static_cast<std::uint32_t>(held.heads));
    set("codec_values", static_cast<std::uint32_t>(held.values));
    set("codec_gate", static_cast<std::uint32_t>(held.gate));
    set("codec_projection", static_cast<std::uint32_t>(held.projection));
    set("codec_down", static_cast<std::uint32_t>(held.down));
    set("codec_more_down", static_cast<std::uint32_t>(held.more_down));
    set("values_apart_low", static_cast<std::uint32_t>(values_apart_));
    set("values_apart_high", static_cast<std::uint32_t>(values_apart_ >> 32));
    set("more_down_low", static_cast<std::uint32_t>(layers_of_more_down_));
    set("more_down_high", static_cast<std::uint32_t>(layers_of_more_down_ >> 32));
    set("inner_norms", inner_norms_ ? 1 : 0);
    set("head_norms", head_norms_ ? 1 : 0);
    set("biased", biased_ ? 1 : 0);
    set("turned", turns_ ? 1 : 0);
    set("rope_factor", turns_ ? constant(period[blocks_[0].turn], "rope_factor") : std::bit_cast<std::uint32_t>(1.f));
    set("scale", constant(first, "scale"));
    set("window", window_);
    set("ring", full_every_ != 1 ? ring_ : 256);
    set("full_every", full_every_);
    d.activation = period[blocks_[0].gated].activation;
    d.groups = {parts_, 1, 1};
    d.least_groups = least_resident(
        parts_, [&](std::uint32_t n) { return shares_heads(n) == shares_heads(parts_) && resident_fits_with(n); });
    for (std::uint32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const block_steps& its = blocks_[pattern_(layer)];
      for (std::size_t i = its.first; i < its.end; ++i) d.weight_bytes += period[i].weight_bytes;
    }
    in_one.push_back(d);
  }

  layer_pattern pattern_;
  std::vector<block_steps> blocks_;  ///< by kind
  std::uint32_t ring_ = 0, full_every_ = 1, window_ = 0;
  std::optional<kernels::codec> values_, projection_, down_, more_down_;
  std::uint64_t values_apart_ = 0, layers_of_more_down_ = 0;
  bool turns_ = false, head_norms_ = false, biased_ = false, inner_norms_ = false;
  operand turned_, projected_, lowered_;
};

}  // namespace intaglio::plan
