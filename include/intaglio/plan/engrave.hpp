// SPDX-License-Identifier: MIT
// From a model type to its table: trace, fuse, place, lower, order, verify, all in constant expressions, once for each
// model and profile. A model whose parts do not fit together, or a plan that cannot be proven, fails one static_assert
// with one sentence.
#pragma once

#include "intaglio/core/fits_together.hpp"

#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "intaglio/ir/trace.hpp"
#include "intaglio/plan/draft_graph.hpp"
#include "intaglio/plan/draft_resident.hpp"
#include "intaglio/plan/table_hash.hpp"
#include "intaglio/plan/verify.hpp"

namespace intaglio::plan {

/// A model with a graph and a config constant; errors show the constant's name, because the config is a reference. A
/// member `name` goes into the table.
template <class Model>
concept engravable = ir::traceable<Model> && requires {
  { Model::config } -> std::convertible_to<const decoder_config&>;
};

/// One sequence of a model's plan, before it is frozen.
/// @param before the sequence drafted before this one, whose weights this one extends; null: the first sequence
template <engravable Model>
constexpr draft make_draft(const profile& target, std::uint32_t context, sequence_id which, const draft* before) {
  return draft_graph(ir::traced<Model>(), Model::config, target, context, which, before);
}

/// The name that a model's type has, if any.
template <class Model>
constexpr std::string_view name_of() {
  if constexpr (requires {
                  { Model::name } -> std::convertible_to<std::string_view>;
                })
    return Model::name;
  else return {};
}

/// A model's plan for one profile. `table` is everything that run time needs.
/// @error does not fit: one sentence that names the layer, what was expected and what was found
template <engravable Model, const profile& Profile, std::uint32_t Context = Model::config.max_position_embeddings>
struct engraved {
 private:
  template <engravable, const profile&, batch_shape, std::uint32_t>
  friend struct engraved_batch;

  static constexpr profile target = profile_of(Profile, Model::config, Context);
  static constexpr draft decode = make_draft<Model>(target, Context, sequence_id::decode, nullptr);
  static constexpr draft prefill = make_draft<Model>(target, Context, sequence_id::prefill, &decode);
  static constexpr draft logits = make_draft<Model>(target, Context, sequence_id::logits, &prefill);
  static constexpr draft drafted = make_draft<Model>(target, Context, sequence_id::verify, &logits);
  static constexpr draft resident = [] {
    draft out;
    out.failure = drafted.failure;
    if (out.failure.empty())
      draft_resident(Model::config, target, Context, decode.sequence, decode.pattern, out.sequence, out.failure);
    return out;
  }();

  template <const draft& Part>
  static constexpr frozen_sequence<Part.sequence.prologue.size, Part.sequence.period.size, Part.sequence.epilogue.size,
                                   Part.sequence.values.size, Part.sequence.resident.size,
                                   Part.sequence.resident_long.size, Part.sequence.arguments.size>
      frozen{Part.sequence};

  static constexpr auto weights = [] {
    std::array<weight, drafted.weights.size> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = drafted.weights.items[i];
    return out;
  }();

  static constexpr sequence view(std::string_view name, std::uint32_t tokens, const drafted_sequence& from,
                                 const auto& f) {
    return {name,
            tokens,
            Model::config.num_hidden_layers,
            drafted.pattern,
            f.prologue,
            f.period,
            f.epilogue,
            f.resident,
            f.resident_long,
            from.long_from,
            f.arguments,
            from.blank_offset,
            from.blank_bytes,
            f.values,
            from.arena_bytes,
            from.residual_offset,
            from.logits_offset,
            from.has_head,
            from.has_sampler};
  }

  static constexpr plan::table make_table() {
    plan::table t = table_of(drafted, Model::config, name_of<Model>(), target, Context);
    t.weights = weights;
    t.decode = view("decode", 1, decode.sequence, frozen<decode>);
    t.trace = trace_of(t.decode);
    t.prefill = view("prefill", chunk_tokens(target, Context), prefill.sequence, frozen<prefill>);
    if constexpr (logits.sequence.has_head)
      t.logits = view("logits", logits_tokens(target, Context), logits.sequence, frozen<logits>);
    if constexpr (drafted.sequence.has_head)
      t.verify = view("verify", verify_tokens(target, Context), drafted.sequence, frozen<drafted>);
    if constexpr (resident.sequence.resident.size != 0)
      t.resident_decode = view("resident_decode", 1, resident.sequence, frozen<resident>);
    t.hash = hash_of(t);
    return t;
  }

  static_assert(fits_together<resident.failure>::model_fits, "intaglio: the model does not fit together");

 public:
  /// The plan, proven: its dispatches, barriers, weights and memory.
  static constexpr plan::table table = make_table();
  static_assert(proven<verify_weights(table)>::model_fits, "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::decode)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::prefill)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::logits)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::verify)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::resident_decode)>::model_fits,
                "intaglio: the plan cannot be proven");
};

}  // namespace intaglio::plan
