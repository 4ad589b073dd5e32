// SPDX-License-Identifier: MIT
// A plan that is split between layers (pipeline parallelism). Each stage is a plan of its own, with the whole plan's
// dispatches for its layers. Rows of the residual stream cross a cut: they are copied out of one stage's arena after
// its pass, and into the next stage's arena before its pass (plan/crossing.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/plan/adapters.hpp"
#include "intaglio/plan/draft_resident.hpp"
#include "intaglio/plan/engrave_batch.hpp"
#include "intaglio/plan/row_memory.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/plan/verify.hpp"

namespace intaglio::plan {

/// Layers first .. end - 1 of a model. A range with first == 0 also has the embedding; a range whose end is the number
/// of layers also has the head.
struct layer_range {
  std::uint32_t first = 0, end = 0;
  constexpr std::uint32_t size() const { return end - first; }
  friend constexpr bool operator==(const layer_range&, const layer_range&) = default;
};

/// Splits a model's layers into stages.
/// @param after numbers of layers in front of each cut: 16 ends the first stage after layer 15
/// @error argument_error: the numbers do not rise, or a stage has no layers
inline std::vector<layer_range> stages_of(std::uint32_t layers, std::span<const std::uint32_t> after) {
  std::vector<layer_range> out;
  std::uint32_t first = 0;
  for (const std::uint32_t end : after) {
    if (end <= first || end >= layers)
      throw argument_error(
          "cut", "rising numbers of layers, each above the one before, from 1 to " + std::to_string(layers - 1),
          std::to_string(end) + (first == 0 ? "" : " after " + std::to_string(first)));
    out.push_back({first, end});
    first = end;
  }
  out.push_back({first, layers});
  return out;
}

/// The plan of one stage. It owns everything that its table points to, except the model's name. Movable.
class stage {
 public:
  /// @param whole outlives the stage
  /// @param groups for a plan with a batch: the number of sets of slots that take turns, which keeps all stages busy
  /// @error argument_error: stages would share more than the stream, or the stage's plan cannot be proven
  stage(const plan::table& whole, layer_range layers, std::uint32_t groups = 1)
      : parts_(std::make_unique<parts>()), layers_(layers) {
    expect_cuttable(whole, layers);
    table_ = whole;
    parts_->config = *whole.config;
    parts_->config.num_hidden_layers = layers.size();
    table_.config = &parts_->config;
    table_.first_layer = layers.first;
    table_.model_layers = whole.config->num_hidden_layers;
    table_.pattern = pattern_of(whole.pattern, layers);
    table_.shape.groups = groups;
    table_.resident_decode = table_.resident_batch = {};
    for (const auto which : cut_sequences)
      if ((whole.*which).layers != 0) table_.*which = part_of(whole.*which);
    table_.moves.takes_stream = table_.moves.gives_stream = false;
    take_resident(whole);
    keep_weights(whole);
    table_.hash = hash_of(table_);
    if (const text<256> fault = plan::verify(table_); !fault.empty())
      throw argument_error("stage of " + std::string(whole.model) + ", layers " + std::to_string(layers.first) +
                               " to " + std::to_string(layers.end - 1),
                           "one that can be proven", std::string(fault.view()), 220);
  }

  const plan::table& table() const noexcept { return table_; }
  layer_range layers() const noexcept { return layers_; }

 private:
  static constexpr std::array cut_sequences{&plan::table::decode, &plan::table::prefill, &plan::table::logits,
                                            &plan::table::verify, &plan::table::batch,   &plan::table::moves};

  static void expect_cuttable(const plan::table& whole, layer_range layers) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      throw argument_error("cut of " + std::string(whole.model), expected, found);
    };
    const std::uint32_t all = whole.config->num_hidden_layers;
    if (layers.first >= layers.end || layers.end > all)
      refuse("layers of the model's " + std::to_string(all),
             std::to_string(layers.first) + " to " + std::to_string(layers.end));
    if (whole.model_layers != 0) refuse("a whole plan", "a stage of one");
    if (family_of(whole.config->model_type).encoder) refuse("a decoder", "an encoder, which one device has whole");
    if (whole.trace.top != 0) refuse("a plan without a trace of features", "one with it");
    for (std::uint8_t kind = 0; kind < whole.pattern.kinds(); ++kind)
      if (whole.caches[kind].shared) refuse("layers with keys and values of their own", "layers that use another's");
    if (whole.kept_bytes() != 0) refuse("layers without a state", "recurrent layers");
    if (adapters_of(whole) != 0) refuse("a plan without room for adapters", "one with it");
    for (const weight& each : whole.weights)
      if (each.layout == weight_layout::column_norms)
        refuse("FFNs that are computed whole", "FFNs whose features are walked");
    for (const auto which : cut_sequences)
      if (const sequence& s = whole.*which;
          s.layers != 0 && s.prologue.size() != (which == &plan::table::moves ? 0 : 1))
        refuse("an embedding alone before the layers", std::to_string(s.prologue.size()) + " dispatches");
  }

  static layer_pattern pattern_of(const layer_pattern& whole, layer_range layers) {
    std::vector<std::uint8_t> kinds;
    if (whole.period == 1 || layers.size() > layer_pattern::max_period) {
      layer_pattern out = whole;  // one kind of layer, or a short pattern rotated to the first layer
      for (std::uint32_t i = 0; i < whole.period; ++i) out.blocks[i] = whole(layers.first + i);
      return out;
    }
    for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) kinds.push_back(whole(layer));
    return layer_pattern::of(kinds);
  }

  bool is_first() const { return layers_.first == 0; }
  bool is_last() const { return layers_.end == table_.model_layers; }

  /// The stage's part of a sequence: its layers, the prologue in the first stage, the epilogue in the last one.
  sequence part_of(const sequence& whole) {
    sequence out = whole;
    out.layers = layers_.size();
    out.pattern = table_.pattern;
    out.takes_stream = !is_first();
    out.gives_stream = !is_last();
    out.stream_in_offset = whole.residual_offset;  // a chain updates the stream in place
    out.has_head = whole.has_head && is_last();
    out.has_sampler = whole.has_sampler && is_last();
    if (!is_last()) out.logits_offset = 0;
    std::vector<std::uint32_t> kept;  // indices in the whole sequence
    std::uint32_t index = 0;
    const auto take = [&](array_view<const dispatch> part, auto&& wanted) {
      std::vector<dispatch> list;
      for (const dispatch& each : part) {
        if (wanted(each)) list.push_back(each), kept.push_back(index);
        ++index;
      }
      return array_view<const dispatch>(parts_->dispatches.emplace_back(std::move(list)));
    };
    out.prologue = take(whole.prologue, [&](const dispatch&) { return is_first(); });
    out.period = take(whole.period, [&](const dispatch& d) { return out.times(d) != 0; });
    out.epilogue = take(whole.epilogue, [&](const dispatch&) { return is_last(); });
    out.values = values_of(whole, out, kept);
    return out;
  }

  /// Adds the resident dispatches of decode and batch, where the whole plan has them.
  void take_resident(const plan::table& whole) {
    const std::uint32_t no_rope = whole.config->no_rope_layer_interval;
    // A resident dispatch computes from a layer's number whether it has RoPE and, in a batch, whether it has a window.
    if (no_rope != 0 && layers_.first % no_rope != 0) return;
    if (table_.decode.period.size() != whole.decode.period.size()) return;
    text<256> failure;
    if (!whole.resident_decode.resident.empty()) {
      const auto made = std::make_unique<drafted_sequence>();
      draft_resident(parts_->config, profile_of(whole, whole.resident_decode.resident.front()), whole.context,
                     *chain_of(whole.decode), table_.pattern, *made, failure);
      if (made->resident.size != 0) table_.resident_decode = decode_part(whole.resident_decode, *made);
    }
    if (!whole.resident_batch.resident.empty() && table_.pattern.period == whole.pattern.period &&
        layers_.first % whole.pattern.period == 0) {
      const auto chain = std::make_unique<batch_draft>();
      chain->shape = table_.shape;
      chain->batch = *chain_of(whole.batch);
      const auto made = std::make_unique<drafted_sequence>(
          draft_resident_rows(parts_->config, profile_of(whole, whole.resident_batch.resident.front()), whole.context,
                              table_.pattern, *chain, failure));
      if (made->resident.size != 0) table_.resident_batch = batch_part(whole.resident_batch, *made);
    }
    if (!failure.empty()) throw argument_error("stage", "one that fits together", std::string(failure.view()), 220);
  }
  /// The profile's settings that a resident dispatch of the whole plan shows.
  static profile profile_of(const plan::table& whole, const dispatch& all) {
    profile out;
    out.prefill_tokens = whole.prefill.max_tokens;
    out.long_prefill_tokens = whole.max_tokens;
    out.work.layers_parts = all.groups[0];
    out.work.layers_subgroups = all.subgroups;
    return out;
  }
  static std::unique_ptr<drafted_sequence> chain_of(const sequence& of) {
    auto out = std::make_unique<drafted_sequence>();
    text<256> none;  // the text is never filled: lists are unbounded at run time
    const auto list = [](const auto& part) { return std::vector(part.begin(), part.end()); };
    out->prologue.assign(list(of.prologue), {}, none);
    out->period.assign(list(of.period), {}, none);
    out->epilogue.assign(list(of.epilogue), {}, none);
    out->arena_bytes = of.arena_bytes;
    out->has_head = of.has_head, out->has_sampler = of.has_sampler;
    return out;
  }
  template <class T>
  std::span<const T> keep(std::deque<std::vector<T>>& in, std::span<const T> list) {
    return in.emplace_back(list.begin(), list.end());
  }
  /// Adds the dispatches, arguments and offsets of a resident dispatch to a stage's chain.
  sequence with_resident(sequence out, const drafted_sequence& made) {
    if (is_first()) out.prologue = keep(parts_->dispatches, made.prologue.all());
    out.resident = keep(parts_->dispatches, made.resident.all());
    out.resident_long = keep(parts_->dispatches, made.resident_long.all());
    out.long_from = made.long_from;
    out.arguments = keep(parts_->arguments, made.arguments.all());
    out.blank_offset = made.blank_offset, out.blank_bytes = made.blank_bytes;
    out.arena_bytes = made.arena_bytes;
    return out;
  }
  /// The resident batch sequence of this stage; its stream has the chain's offset.
  sequence batch_part(const sequence& whole, const drafted_sequence& made) {
    sequence out = with_resident(table_.batch, made);
    out.name = whole.name;
    return out;
  }
  /// The resident decode sequence of this stage. Its stream has one offset for each layer; the first one holds the
  /// input.
  sequence decode_part(const sequence& whole, const drafted_sequence& made) {
    sequence out = with_resident(table_.decode, made);
    out.name = whole.name;
    out.period = keep(parts_->dispatches, made.period.all());
    if (is_last()) out.epilogue = keep(parts_->dispatches, made.epilogue.all());
    const dispatch& embeds = made.prologue.items[0];
    out.stream_in_offset = embeds[kernels::push_ids<kernels::embed_kernel>.output].offset;
    out.residual_offset = made.residual_offset;
    out.logits_offset = is_last() ? made.logits_offset : 0;
    const auto values = keep(parts_->values, made.values.all());
    for (placed_value& each : parts_->values.back())  // all values live during the whole sequence
      each.last = static_cast<std::uint32_t>(out.prologue.size() + out.period.size() + out.epilogue.size());
    out.values = values;
    return out;
  }

  /// The values that live during dispatches of the stage. The stream lives from the copy in to the copy out.
  array_view<const placed_value> values_of(const sequence& whole, const sequence& part,
                                           std::span<const std::uint32_t> kept) {
    std::vector<placed_value> list;
    for (placed_value each : whole.values) {
      const auto first = std::lower_bound(kept.begin(), kept.end(), each.first);
      const auto after = std::upper_bound(kept.begin(), kept.end(), each.last);
      if (first >= after) continue;  // the value lives in other stages only
      const auto index = [&](auto at) { return static_cast<std::uint32_t>(at - kept.begin()); };
      const bool to_the_end = after == kept.end() && each.last > kept.back();
      each.first = index(first);
      each.last = index(after) - (to_the_end ? 0 : 1);
      if (each.offset == whole.residual_offset && each.type == dtype::f32) {
        if (part.takes_stream) each.first = 0;
        if (part.gives_stream) each.last = static_cast<std::uint32_t>(kept.size());
      }
      list.push_back(each);
    }
    return parts_->values.emplace_back(std::move(list));
  }

  /// Keeps the weights that the stage's dispatches read, and gives them new offsets.
  void keep_weights(const plan::table& whole) {
    std::vector<bool> used(whole.weights.size());
    each_dispatch([&](dispatch& d) {
      for (const operand& each : d.push)
        if (each.where == region::weight) used.at(each.slot) = true;
      for (std::size_t i = 0; i < d.access_count; ++i)
        if (d.accesses[i].where == region::weight) used.at(d.accesses[i].slot) = true;
    });
    std::vector<std::uint32_t> new_slots(used.size());
    table_.global_weight_bytes = table_.layer_weight_bytes = 0;
    for (std::uint32_t slot = 0; slot < used.size(); ++slot) {
      if (!used[slot]) continue;
      new_slots[slot] = static_cast<std::uint32_t>(parts_->weights.size());
      weight& kept = parts_->weights.emplace_back(whole.weights[slot]);
      std::uint64_t& end = kept.per_layer ? table_.layer_weight_bytes : table_.global_weight_bytes;
      kept.offset = end;
      end += aligned(kept.bytes);
    }
    table_.weights = parts_->weights;
    for (std::vector<operand>& list : parts_->arguments)
      for (operand& each : list)
        if (each.where == region::weight) each.slot = new_slots[each.slot];
    each_dispatch([&](dispatch& d) {
      for (operand& each : d.push)
        if (each.where == region::weight) each.slot = new_slots[each.slot];
      for (std::size_t i = 0; i < d.access_count; ++i)
        if (d.accesses[i].where == region::weight) d.accesses[i].slot = new_slots[d.accesses[i].slot];
    });
  }

  template <class Each>
  void each_dispatch(Each&& each) {
    for (std::vector<dispatch>& list : parts_->dispatches)
      for (dispatch& d : list) each(d);
  }

  struct parts {
    decoder_config config;
    std::deque<std::vector<dispatch>> dispatches;
    std::deque<std::vector<placed_value>> values;
    std::deque<std::vector<operand>> arguments;
    std::vector<weight> weights;
  };
  std::unique_ptr<parts> parts_;
  layer_range layers_;
  plan::table table_;
};

/// Device memory that a stage takes, in bytes.
struct stage_cost {
  std::uint64_t weights = 0, caches = 0, rest = 0;  ///< rest: arena, state and rows that cross
  constexpr std::uint64_t total() const { return weights + caches + rest; }
};

/// Computes the memory that stages of a plan would take, without making their plans.
class stage_costs {
 public:
  /// @param one_memory whether the device's memory is the host's
  explicit stage_costs(const plan::table& whole, bool one_memory = false)
      : layers_(whole.config->num_hidden_layers), rest_((std::max)(whole.arena_bytes(), whole.batch.arena_bytes) +
                                                        whole.state_bytes() + kernels::ring_bytes(whole.ring_size)) {
    weights_.push_back(0), caches_.push_back(0);
    for (std::uint32_t layer = 0; layer < layers_; ++layer) {
      std::uint64_t bytes = 0;
      for (const weight& each : whole.weights)
        if (each.per_layer && whole.has(each, layer)) bytes += aligned(each.bytes);
      weights_.push_back(weights_.back() + bytes);
      caches_.push_back(caches_.back() + whole.cache_of(layer).bytes() +
                        (whole.batch.layers != 0 ? whole.pool(whole.pattern(layer)).bytes() : 0));
    }
    for (const weight& each : whole.weights) global_.push_back({each.per_layer ? 0 : aligned(each.bytes)});
    const auto note = [&](array_view<const dispatch> part, auto&& by) {
      for (const dispatch& d : part)
        for (const operand& each : d.push)
          if (each.where == region::weight) by(global_[each.slot], d);
    };
    note(whole.decode.prologue, [](global& g, const dispatch&) { g.before = true; });
    note(whole.decode.epilogue, [](global& g, const dispatch&) { g.after = true; });
    note(whole.decode.period, [](global& g, const dispatch& d) { g.kinds |= std::uint64_t{1} << d.block; });
    pattern_ = whole.pattern;
    for (const bool takes : {false, true})
      for (const bool gives : {false, true}) {
        const row_memory rows = row_memory_of(whole, whole.batch.layers != 0, takes, gives);
        rows_[takes][gives] = rows.of_device() + (one_memory ? rows.of_host() : 0);
      }
  }

  std::uint32_t layers() const noexcept { return layers_; }
  stage_cost of(layer_range range) const {
    std::uint64_t kinds = 0, weights = weights_[range.end] - weights_[range.first];
    for (std::uint32_t layer = range.first; layer < range.end; ++layer) kinds |= std::uint64_t{1} << pattern_(layer);
    for (const global& each : global_)
      if ((each.before && range.first == 0) || (each.after && range.end == layers_) || (each.kinds & kinds) != 0)
        weights += each.bytes;
    return {weights, caches_[range.end] - caches_[range.first], rest_ + rows_[range.first != 0][range.end != layers_]};
  }

 private:
  /// A weight that is not per layer, and the sections that read it.
  struct global {
    std::uint64_t bytes = 0, kinds = 0;
    bool before = false, after = false;
  };
  std::uint32_t layers_;
  std::uint64_t rest_;
  std::array<std::array<std::uint64_t, 2>, 2> rows_{};  ///< rows that cross, if they are taken and if they are given
  layer_pattern pattern_;
  std::vector<global> global_;
  std::vector<std::uint64_t> weights_, caches_;  ///< sums over the layers before each layer
};

/// A device as choose_cut() sees it.
struct stage_device {
  std::uint64_t memory_bytes = 0;  ///< memory that a stage may take
  double rate = 1;                 ///< bytes of weights a second, or any other rate in a unit that all devices share
};

/// The cost of a stage that cannot be.
inline constexpr double no_stage = (std::numeric_limits<double>::max)();

/// A cut in the form that stages_of() takes, and its cost. @see cheapest_cut
struct costed_cut {
  std::vector<std::uint32_t> after{};
  double cost = no_stage;  ///< no_stage: there is no cut
};
/// Finds the first cut of the least cost. @param join adds a stage's cost to the cost of the stages before it
template <class Cost, class Join>
constexpr costed_cut cheapest_cut(std::uint32_t layers, std::uint32_t count, const Cost& cost, const Join& join) {
  // best[d][end]: cost of the first d + 1 stages when these have the layers below `end`.
  std::vector<std::vector<double>> best(count, std::vector<double>(layers + 1, no_stage));
  std::vector<std::vector<std::uint32_t>> from(count, std::vector<std::uint32_t>(layers + 1, 0));
  for (std::uint32_t d = 0; d < count; ++d)
    for (std::uint32_t end = d + 1; end <= layers; ++end) {
      if ((d + 1 == count) != (end == layers)) continue;
      for (std::uint32_t first = d; first < end; ++first) {
        if ((d == 0) != (first == 0)) continue;
        const double before = d == 0 ? 0 : best[d - 1][first];
        const double own = before < no_stage ? cost(d, layer_range{first, end}) : no_stage;
        if (!(own < no_stage)) continue;
        const double sum = join(before, own);
        if (sum < best[d][end] * (1 - 1e-12)) best[d][end] = sum, from[d][end] = first;  // not by rounding alone
      }
    }
  costed_cut out{{}, best[count - 1][layers]};
  if (!(out.cost < no_stage)) return out;
  for (std::uint32_t d = count - 1, end = layers; d > 0; --d) out.after.push_back(end = from[d][end]);
  std::reverse(out.after.begin(), out.after.end());
  return out;
}

/// Finds the cut whose most expensive stage costs least. Many cuts can be equal in this, since the other stages have
/// layers to exchange. Of those it returns the most even one: the sum of the squares of its stages' costs is the least.
/// @param count of stages, from 1 to `layers`
/// @param cost of a stage by its index and its layer_range, 0 or more; no_stage or more: the stage cannot be
constexpr costed_cut most_even_cut(std::uint32_t layers, std::uint32_t count, const auto& cost) {
  const costed_cut first =
      cheapest_cut(layers, count, cost, [](double before, double own) { return before < own ? own : before; });
  if (!(first.cost < no_stage) || first.cost == 0) return first;
  const auto square = [&](std::uint32_t d, layer_range range) {
    const double own = cost(d, range), share = own > first.cost * (1 + 1e-9) ? no_stage : own / first.cost;
    return share < no_stage ? share * share : no_stage;
  };
  return {cheapest_cut(layers, count, square, [](double before, double own) { return before + own; }).after,
          first.cost};
}

/// Chooses the cut whose slowest stage takes the least time, and of equal ones the most even one, among cuts that fit
/// in memory. Each device gets one stage, in the devices' order. A stage's time is that of all its weights: the first
/// stage counts the whole embedding, of which a pass reads some rows, and the last one the head.
/// @param costs of the plan for each device's profile
/// @return in the form that stages_of() takes. If no cut fits, the cut whose stages exceed their devices' memory by the
/// smallest factor: runtime::require_stage_memory() refuses it by the name of a stage.
/// @error argument_error: more devices than layers
inline std::vector<std::uint32_t> choose_cut(array_view<const stage_costs> costs,
                                             array_view<const stage_device> devices) {
  const std::uint32_t layers = costs.front().layers();
  const auto count = static_cast<std::uint32_t>(devices.size());
  if (count > layers)
    throw argument_error("devices", "at most one for each of " + std::to_string(layers) + " layers",
                         std::to_string(count));
  const costed_cut out = most_even_cut(layers, count, [&](std::uint32_t d, layer_range range) {
    const stage_cost cost = costs[d].of(range);
    return cost.total() > devices[d].memory_bytes ? no_stage : static_cast<double>(cost.weights) / devices[d].rate;
  });
  if (out.cost < no_stage) return out.after;
  return most_even_cut(layers, count,
                       [&](std::uint32_t d, layer_range range) {
                         const std::uint64_t has = (std::max)(devices[d].memory_bytes, std::uint64_t{1});
                         return static_cast<double>(costs[d].of(range).total()) / static_cast<double>(has);
                       })
      .after;
}

}  // namespace intaglio::plan
