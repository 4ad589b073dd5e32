// SPDX-License-Identifier: MIT
// Decode of coded weights with the resident dispatch (kernels::layers_coded_interface), made from the chain of
// dispatches. Each kind of block must be one that the kernel computes. It starts from the four products and the
// attention of a Llama. Blocks may add biases of q, k and v (Qwen2), norms of the heads of q and k (Qwen3), these and
// norms before additions to the stream (Gemma-3), and bounded scores (Gemma 2). They may have norms only there and over
// all heads (OLMo 2), or experts instead of an FFN (Mixtral). Each matrix of a layer may have one of four
// codecs (kernels::layers_coded::codecs), and layers may be of sixteen kinds by their codecs.
#pragma once

#include <bit>

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/block_steps.hpp"
#include "intaglio/plan/one_dispatch.hpp"
#include "intaglio/plan/resident_experts.hpp"

namespace intaglio::plan {

class resident_coded_layers : public one_dispatch {
 public:
  constexpr resident_coded_layers(const decoder_config& config, const profile& target, std::uint32_t context,
                                  std::uint64_t counters_end, const layer_pattern& pattern)
      : one_dispatch(config, target, context, counters_end), pattern_(pattern) {}

  /// @return false if the profile has no resident dispatch, or the kernel does not compute a block of this shape
  constexpr bool make(const std::vector<dispatch>& chain_prologue, const std::vector<dispatch>& chain_period,
                      const std::vector<dispatch>& chain_epilogue) {
    prologue = chain_prologue, period = chain_period, epilogue = chain_epilogue;
    if (target_.work.layers_parts == 0 || !cooperative() || !fits()) return false;
    parts_ = workgroups();
    place_values();
    for (const block_steps& each : blocks_) bind(each);
    operand first = stream_;
    first.layer_stride = 0;
    move(prologue[0], kernels::push_ids<kernels::embed_kernel>.output, first);
    blank_beside();
    for (dispatch& each : epilogue) move_behind(each);
    add_dispatch();
    return true;
  }

 private:
  constexpr kernels::codec codec_of(std::size_t step) const {
    return static_cast<kernels::codec>(constant(period[step], "codec"));
  }
  constexpr const dispatch& first_qkv() const { return period[blocks_[0].qkv]; }

  constexpr bool product(const dispatch& d, bool normalises, kernels::epilogue how, std::uint32_t columns,
                         std::uint32_t rows, std::uint32_t experts_used = 0) const {
    return d.kernel == kernel::matmul &&
           constant(d, "prologue") ==
               static_cast<std::uint32_t>(normalises ? kernels::prologue::norm : kernels::prologue::plain) &&
           constant(d, "epilogue") == static_cast<std::uint32_t>(how) && constant(d, "columns") == columns &&
           constant(d, "rows") == rows && constant(d, "experts_used") == experts_used &&
           (!normalises || constant(d, "eps") == eps());
  }
  constexpr bool adds_normalised(const dispatch& d) const {
    return d.kernel == kernel::norm_add && constant(d, "biased") == 0 && constant(d, "width") == config_.hidden_size &&
           constant(d, "eps") == eps();
  }
  /// The epsilon of all norms, as bits.
  constexpr std::uint32_t eps() const {
    return constant(outer_norms_ ? first_qkv() : period[blocks_[0].behind_down], "eps");
  }

  /// Number of workgroups: the profile's; for dense weights the smallest that takes as many turns for gate and up, if
  /// these then fill all turns (Gemma-3 4B: 128 instead of 132).
  constexpr std::uint32_t workgroups() const {
    const std::uint32_t all = target_.work.layers_parts, subgroups = kernels::layers_coded::resident_subgroups,
                        rows = config_.intermediate_size;
    if (codec_of(blocks_[0].gated) > kernels::codec::bf16) return all;
    const std::uint32_t turns = (rows + all * subgroups - 1) / (all * subgroups),
                        fewer = (rows + turns * subgroups - 1) / (turns * subgroups);
    return 32 * fewer >= 31 * all ? fewer : all;
  }
  /// Notes the codecs of a kind of block. @return whether there is room for them
  constexpr bool takes_codecs(const block_steps& of) {
    using kernels::layers_coded::matrix;
    return codecs_.add(matrix::heads, codec_of(of.qkv)) &&
           (!of.apart() || codecs_.add(matrix::values, codec_of(of.v))) &&
           codecs_.add(matrix::gate, codec_of(of.gated)) && codecs_.add(matrix::projection, codec_of(of.projection)) &&
           codecs_.add(matrix::down, codec_of(of.down));
  }
  /// The codecs of a kind of block, as a word.
  constexpr std::uint32_t layer_codecs(const block_steps& of) const {
    using kernels::layers_coded::matrix;
    kernels::layers_coded::layer_codecs out;
    const auto set = [&](matrix its, std::size_t step) { out.set(its, codecs_.index_of(codec_of(step))); };
    set(matrix::heads, of.qkv), set(matrix::gate, of.gated);
    set(matrix::projection, of.projection), set(matrix::down, of.down);
    if (of.apart()) set(matrix::values, of.v);
    return out.word;
  }
  /// Finds the kinds of layers by their codecs. @return whether the kernel has room for them
  constexpr bool finds_kinds() {
    using namespace kernels::layers_coded;
    if (!codecs_.mixed()) return true;
    if (config_.num_hidden_layers > most_mixed_layers) return false;
    std::vector<std::uint32_t> words;
    for (std::uint32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const std::uint32_t word = layer_codecs(blocks_[pattern_(layer)]);
      std::uint32_t kind = 0;
      while (kind < words.size() && words[kind] != word) ++kind;
      if (kind == most_kinds) return false;
      if (kind == words.size()) {
        words.push_back(word);
        kind_codecs_[kind / 2] |= word << 16 * (kind % 2);
      }
      for (std::uint32_t bit = 0; bit < 4; ++bit)
        kinds_[most_mixed_layers / 32 * bit + layer / 32] |= (kind >> bit & 1) << layer % 32;
    }
    return true;
  }
  constexpr bool normalises_heads() const { return head_norms_ != kernels::turn_norms::none; }
  constexpr bool resident_fits_with(std::uint32_t workgroup_count) const {
    return resident_coded_fits(config_, codecs_, head_norms_, workgroup_count, context_, ring_, ffns_, experts_.its);
  }

  /// Whether q, k and v of a kind of block reach attention as they do in the first kind.
  constexpr bool turns_alike(const block_steps& of) const {
    if ((of.turn != no_step) != turns_) return false;
    if (of.turn == no_step) return !of.apart();
    const dispatch& d = period[of.turn];
    const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization),
               first = kernels::constants_of<kernels::turn_kernel>(period[blocks_[0].turn].specialization);
    const std::uint32_t kv = config_.kv_size(), stacked = config_.q_size() + (of.apart() ? 1 : 2) * kv;
    return c.norms == first.norms && c.biased == first.biased && c.v_norm == 0 &&
           (c.norms != kernels::turn_norms::all_heads || c.biased == 0) && c.rope_factor == first.rope_factor &&
           (c.norms == kernels::turn_norms::none || constant(d, "eps") == eps()) && c.q_stride == stacked &&
           c.k_stride == stacked && c.v_stride == (of.apart() ? kv : stacked);
  }
  constexpr bool is_block(const block_steps& of) {
    using kernels::epilogue;
    const std::uint32_t hidden = config_.hidden_size, ffn = config_.intermediate_size, q = config_.q_size(),
                        kv = config_.kv_size();
    const auto at = [&](std::size_t step) -> const dispatch& { return period[step]; };
    const auto stored = of.turn != no_step ? epilogue::store : epilogue::rope_cache;
    if (!product(at(of.qkv), outer_norms_, stored, hidden, q + (of.apart() ? 1 : 2) * kv) ||
        (of.apart() && !product(at(of.v), outer_norms_, stored, hidden, kv)) || !takes_codecs(of))
      return false;
    if (!turns_alike(of)) return false;
    const dispatch &attends = at(of.attends), &first = at(blocks_[0].attends);
    if (constant(attends, "has_sinks") != 0 || constant(attends, "ahead") != 0 ||
        constant(attends, "cache_element") != static_cast<std::uint32_t>(kernels::element::f16) ||
        constant(attends, "scale") != constant(first, "scale") ||
        constant(attends, "softcap") != constant(first, "softcap"))
      return false;
    if ((of.behind_projection != no_step) != inner_norms_ || (of.behind_down != no_step) != inner_norms_) return false;
    if (inner_norms_ && (!adds_normalised(at(of.behind_projection)) || !adds_normalised(at(of.behind_down))))
      return false;
    const auto adds = inner_norms_ ? epilogue::store : epilogue::add;
    if (!product(at(of.projection), false, adds, q, hidden)) return false;
    if (of.ffns() != ffns_ || (ffns_.further() != 0 && inner_norms_)) return false;
    if (!experts_.are_in(period, of, hidden)) return false;
    if (of.is_mixture() && (inner_norms_ || ffns_ != kernels::layers::ffns{} ||
                            !product(at(of.router), outer_norms_, epilogue::store, hidden, experts_.its.experts)))
      return false;
    for (const auto& [gated, down] : {block_steps::ffn{of.gated, of.down}, of.early, of.late}) {
      if (gated == no_step) continue;
      if (!product(at(gated), outer_norms_, epilogue::gated, hidden, 2 * ffn, experts_.its.used) ||
          codec_of(gated) != codec_of(of.gated) || at(gated).activation != at(blocks_[0].gated).activation ||
          !product(at(down), false, of.is_mixture() ? epilogue::store : adds, ffn, hidden, experts_.its.used) ||
          codec_of(down) != codec_of(of.down))
        return false;
    }
    return true;
  }

  /// Whether two layers have the same window and the same RoPE table.
  constexpr bool sees_alike(std::uint32_t layer, std::uint32_t other) {
    const block_steps &a = blocks_[pattern_(layer)], &b = blocks_[pattern_(other)];
    for (const auto name : {"window", "ring", "context"})
      if (constant(period[a.attends], name) != constant(period[b.attends], name)) return false;
    return push(first_with_cache(a), "rope") == push(first_with_cache(b), "rope");
  }
  /// Finds which layers see all positions: all layers, or the last of every full_every_ layers. The other layers see a
  /// window. They may also see all positions but have another RoPE table, or have RoPE where the last one has none.
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
      // Each layer has its own RoPE table: every n-th layer has none, and the others see all positions too.
      if (full_every_ != 1) return false;
      full_every_ = n, window_ = ring_ = context_;
      return true;
    }
    if (full_every_ == 1) return true;
    window_ = constant(other, "window"), ring_ = constant(other, "context");
    if (window_ == 0) window_ = context_;
    // The cache is a ring, or holds all positions if the context is not longer.
    return (constant(other, "ring") != 0) == (ring_ != context_);
  }

  constexpr bool fits() {
    const std::uint32_t kinds = pattern_.kinds();
    if (prologue.size() != 1 || prologue[0].kernel != kernel::embed || this->epilogue.back().kernel != kernel::sample)
      return false;
    const bool bounded = this->epilogue.size() == 3 && this->epilogue[1].kernel == kernel::gated;  // of logits
    if (this->epilogue.size() != (bounded ? 3u : 2u)) return false;
    if (this->epilogue[0].kernel != kernel::matmul && this->epilogue[0].kernel != kernel::dense_matmul) return false;
    blocks_.resize(kinds);
    for (std::uint32_t kind = 0; kind < kinds; ++kind)
      if (!find_steps(period, static_cast<std::uint8_t>(kind), blocks_[kind])) return false;
    inner_norms_ = blocks_[0].behind_down != no_step;
    ffns_ = blocks_[0].ffns();
    experts_.its = resident_experts::of(period, blocks_[0]);
    turns_ = blocks_[0].turn != no_step;
    if (turns_) head_norms_ = kernels::constants_of<kernels::turn_kernel>(period[blocks_[0].turn].specialization).norms;
    outer_norms_ =
        !inner_norms_ || constant(first_qkv(), "prologue") != static_cast<std::uint32_t>(kernels::prologue::plain);
    biased_ = turns_ && constant(period[blocks_[0].turn], "biased") != 0;
    for (const block_steps& each : blocks_)
      if (!is_block(each)) return false;
    return finds_windows() && finds_kinds() && resident_fits_with(workgroups());
  }

  constexpr void place_values() {
    const std::uint32_t layers = config_.num_hidden_layers;
    stream_ = reserve("stream", config_.hidden_size, layers + 1);
    middle_ = reserve("behind attention", config_.hidden_size, layers);
    query_ = reserve("query", config_.q_size() + 2 * config_.kv_size() + scores(), layers);
    attended_ = reserve("attention", config_.q_size(), layers);
    const std::uint32_t used = experts_.are_there() ? experts_.its.used : 1;
    if (experts_.are_there()) experts_.logits = reserve("router's logits", experts_.its.experts, layers);
    gated_ = reserve("gated", used * config_.intermediate_size, layers);
    if (turns_) turned_ = reserve("query, turned", config_.q_size(), layers);
    if (inner_norms_) {
      projected_ = reserve("projection", config_.hidden_size, layers);
      lowered_ = reserve("down", config_.hidden_size, layers);
    }
    for (std::uint32_t i = 0; i < ffns_.further(); ++i) {
      further_[i].gated = reserve(i == 0 ? "gated further" : "gated last", config_.intermediate_size, layers);
      further_[i].stream = reserve(i == 0 ? "behind an FFN" : "behind a second FFN", config_.hidden_size, layers);
    }
    std::uint32_t splits = 1;
    for (const block_steps& each : blocks_) splits = (std::max)(splits, constant(period[each.attends], "splits"));
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
    reserve_behind();
  }

  /// Whether workgroups share a head and exchange scores of positions, which are stored after query, key and value.
  constexpr bool shares_heads(std::uint32_t workgroups) const {
    return inner_norms_ && kernels::layers_coded::attention_shares * config_.num_attention_heads <= workgroups;
  }
  constexpr std::uint32_t scores() const {
    const std::uint32_t heads = config_.num_attention_heads;
    return shares_heads(parts_) ? heads * kernels::attention_spans(context_) * kernels::attention_span : 0;
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

  /// Binds a dispatch of kernel turn: q, k and v are stored one after the other.
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
    rebind(qkv, behind_early(), query_, nullptr);
    const std::uint64_t behind = std::uint64_t{4} * (config_.q_size() + config_.kv_size());
    for (std::size_t i = 0; i < qkv.access_count; ++i)
      if (access& a = qkv.accesses[i]; a.where == region::arena && a.write)
        a.bytes = behind + (of.apart() ? 0 : std::uint64_t{4} * config_.kv_size());
    if (of.apart()) rebind(period[of.v], behind_early(), query_behind(behind), nullptr);
    if (of.turn != no_step) turns(period[of.turn]);
    const operand& query = of.turn != no_step ? turned_ : query_;
    dispatch& attends = period[of.attends];
    const bool splits = constant(attends, "splits") > 1;
    const std::uint64_t partials_offset = push(attends, "partials").offset;
    for (std::size_t i = 0; i < attends.access_count; ++i) {
      access& a = attends.accesses[i];
      if (a.where != region::arena) continue;
      const operand& to = splits && a.offset == partials_offset ? partials_ : a.write ? attended_ : query;
      if (splits && a.offset == partials_offset)
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
      rebind(at(of.projection), attended_, projected_, nullptr);
      rebind(at(of.behind_projection), projected_, middle_, &stream_);
      rebind(at(of.gated), middle_, gated_, nullptr);
      rebind(at(of.down), gated_, lowered_, nullptr);
      rebind(at(of.behind_down), lowered_, next_, &middle_);
    } else {
      rebind(at(of.projection), attended_, middle_, &behind_early());
      if (of.is_mixture()) experts_.bind(period, of, middle_, gated_, next_);
    }
    if (!inner_norms_ && !of.is_mixture()) {
      rebind(at(of.gated), middle_, gated_, nullptr);
      rebind(at(of.down), gated_, behind_first(), &middle_);
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
  constexpr void add_arguments(const block_steps& of) {
    const auto at = [&](std::size_t step) -> dispatch& { return period[step]; };
    // Arguments are as in kernels::layers, with the differences that kernels::layers_coded states. Norms before
    // additions run after the workgroups' exchange.
    const operand none{};
    const auto list = {stream_,
                       push(first_with_cache(of), "keys"),
                       push(first_with_cache(of), "values"),
                       query_,
                       attended_,
                       inner_norms_ ? projected_ : middle_,
                       gated_,
                       inner_norms_ ? lowered_ : behind_first(),
                       outer_norms_ ? push(at(of.qkv), "norm_weight") : none,
                       push(at(of.qkv), "weight"),
                       push(first_with_cache(of), "rope"),
                       normalises_heads() ? push(at(of.turn), "k_norm") : none,
                       push(at(of.projection), "weight"),
                       inner_norms_ ? push(at(of.behind_projection), "norm_weight") : none,
                       outer_norms_ ? push(at(of.gated), "norm_weight") : none,
                       push(at(of.gated), "weight"),
                       normalises_heads() ? push(at(of.turn), "q_norm") : none,
                       inner_norms_ ? next_ : none,
                       push(at(of.down), "weight"),
                       inner_norms_ ? push(at(of.behind_down), "norm_weight") : none,
                       partials_,
                       biased_ ? push(at(of.turn), "bias") : none,
                       of.apart() ? push(at(of.v), "weight") : none};
    arguments.insert(arguments.end(), list.begin(), list.end());
    if (of.is_mixture()) arguments.insert(arguments.end(), {push(at(of.router), "weight"), experts_.logits});
    const auto further = [&](const block_steps::ffn& its, const operand& gated, const operand& out) {
      if (!its.is_there()) return;
      arguments.insert(arguments.end(), {gated, out, push(at(its.gated), "norm_weight"), push(at(its.gated), "weight"),
                                         none, none, push(at(its.down), "weight"), none});
    };
    further(of.early, further_[0].gated, further_[0].stream);
    further(of.late, further_[ffns_.before].gated, next_);
  }
  /// The stream that the attention sublayer reads, and the stream after the FFN that follows attention.
  constexpr const operand& behind_early() const { return ffns_.before != 0 ? further_[0].stream : stream_; }
  constexpr const operand& behind_first() const { return ffns_.behind > 1 ? further_[ffns_.before].stream : next_; }
  /// The dispatch that writes the KV cache.
  constexpr dispatch& first_with_cache(const block_steps& of) { return period[of.turn != no_step ? of.turn : of.qkv]; }

  constexpr void set_codecs(kernels::layers_coded_kernel::constants& out) const {
    const auto word = [&](std::uint32_t at) {
      return at < codecs_.count ? kernels::layers_coded::codec_word(codecs_.items[at]) : 0;
    };
    out.codec = codecs_.items[0], out.codecs_used = codecs_.used;
    out.kind_codecs = kind_codecs_, out.kinds = kinds_;
    out.codec_second = word(1), out.codec_third = word(2), out.codec_fourth = word(3);
  }
  constexpr kernels::layers_coded_kernel::constants constants() const {
    using kernels::layers_coded::norms_around;
    kernels::layers_coded_kernel::constants out;
    set_codecs(out);
    out.hidden_size = config_.hidden_size, out.intermediate_size = config_.intermediate_size;
    out.layers = config_.num_hidden_layers;
    out.parts = parts_, out.spin_limit = resident_spin_limit;
    out.eps = std::bit_cast<float>(eps());
    out.head_dim = config_.head_dim;
    out.heads = config_.num_attention_heads, out.kv_heads = config_.num_key_value_heads;
    out.context = context_;
    out.inner_norms = static_cast<std::uint32_t>(!inner_norms_  ? norms_around::before
                                                 : outer_norms_ ? norms_around::before_and_behind
                                                                : norms_around::behind);
    out.head_norms = static_cast<std::uint32_t>(head_norms_);
    out.biased = biased_ ? 1 : 0, out.turned = turns_ ? 1 : 0;
    out.rope_factor = 1.f;
    if (turns_)
      out.rope_factor = kernels::constants_of<kernels::turn_kernel>(period[blocks_[0].turn].specialization).rope_factor;
    const auto attends =
        kernels::constants_of<kernels::attention_kernel>(period[blocks_[pattern_(0)].attends].specialization);
    out.scale = attends.scale, out.softcap = attends.softcap;
    out.ffns = kernels::layers_coded::ffns_word(ffns_, experts_.its);
    out.window = window_, out.ring = full_every_ != 1 ? ring_ : 256, out.full_every = full_every_;
    return out;
  }
  constexpr std::uint64_t argument_bytes() const {
    return std::uint64_t{8} * config_.num_hidden_layers * kernels::layers_coded_kernel::argument_count(constants());
  }
  constexpr void add_dispatch() {
    dispatch d{.kernel = kernel::layers_coded, .barrier = true, .subgroups = kernels::layers_coded::resident_subgroups};
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    push(d, "arguments") = {region::arguments};
    push(d, "progress") = {region::state, 0, counters_end_};
    push(d, "state") = {region::state};
    note(region::arguments, false, 0, argument_bytes());
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, 16 * 4);
    note(region::arena, true, 0, layers_bytes_);
    const dispatch& caches = first_with_cache(blocks_[0]);
    for (std::size_t i = 0; i < caches.access_count; ++i)
      if (const access& a = caches.accesses[i]; a.where == region::keys || a.where == region::values)
        note(a.where, true, 0, a.bytes);
    kernels::store(constants(), d.specialization);
    d.activation = period[blocks_[0].gated].activation;
    d.groups = {parts_, 1, 1};
    d.least_groups = least_resident(
        parts_, [&](std::uint32_t n) { return shares_heads(n) == shares_heads(parts_) && resident_fits_with(n); });
    for (std::uint32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const block_steps& its = blocks_[pattern_(layer)];
      for (std::size_t i = its.first; i < its.end; ++i) d.weight_bytes += period[i].weight_bytes;
    }
    resident.push_back(d);
  }

  layer_pattern pattern_;
  std::vector<block_steps> blocks_;  ///< by kind of block
  std::uint32_t ring_ = 0, full_every_ = 1, window_ = 0;
  kernels::layers_coded::codecs codecs_;
  decltype(kernels::layers_coded_kernel::constants::kind_codecs) kind_codecs_{};
  decltype(kernels::layers_coded_kernel::constants::kinds) kinds_{};
  kernels::turn_norms head_norms_ = kernels::turn_norms::none;
  bool turns_ = false, biased_ = false, inner_norms_ = false, outer_norms_ = true;
  resident_experts experts_;
  operand turned_, projected_, lowered_;
};

}  // namespace intaglio::plan
