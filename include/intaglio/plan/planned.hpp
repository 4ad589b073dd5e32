// SPDX-License-Identifier: MIT
// A model's plan made while the program runs, by the functions that engrave plans. It is for tools that know many
// models and run one. The table is equal to the engraved one.
#pragma once

#include <memory>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/plan/adapters.hpp"
#include "intaglio/plan/engrave_batch.hpp"
#include "intaglio/plan/ffn_form.hpp"

namespace intaglio::plan {

/// A plan made at run time. It owns everything that its table points to. Movable.
class planned {
 public:
  /// @param form of the model's FFNs in decode
  /// @error argument_error: the model does not fit together, or the plan cannot be proven; the text is the compiler's
  template <engravable Model>
  static planned of(const profile& target, std::uint32_t context = Model::config.max_position_embeddings,
                    const batch_shape& shape = {}, ffn_form form = {}) {
    return of(ir::traced<Model>(), Model::config, name_of<Model>(), target, context, shape, form);
  }
  /// @param g a model's layers, traced  @param model its name, or empty  @param adapters their number and rank, or none
  /// @error argument_error: the model does not fit together, or the plan cannot be proven
  static planned of(ir::graph g, const decoder_config& config, std::string_view model, const profile& target,
                    std::uint32_t context, const batch_shape& shape = {}, ffn_form form = {},
                    const adapter_room& adapters = {}) {
    shape_ffns(g, form);
    adapted_graph::make_room(g, adapters);
    return planned(g, config, model, target, context, shape);
  }

  const plan::table& table() const noexcept { return table_; }

 private:
  planned(const ir::graph& g, const decoder_config& config, std::string_view model, const profile& wanted,
          std::uint32_t context, const batch_shape& shape)
      : parts_(std::make_unique<parts>()) {
    const profile target = profile_of(wanted, config, context);
    parts_->config = config;
    parts_->model = model;
    const std::string name(model.empty() ? intaglio::name(config.model_type) : model);
    const draft* before = nullptr;
    for (const sequence_id each :
         {sequence_id::decode, sequence_id::prefill, sequence_id::logits, sequence_id::verify}) {
      draft& made = parts_->drafts[static_cast<std::size_t>(each)];
      made = draft_graph(g, config, target, context, each, before);
      if (!made.failure.empty())
        throw argument_error("model " + name, "one that fits together", std::string(made.failure.view()), 220);
      before = &made;
    }
    const auto& [decode, prefill, logits, verified] = parts_->drafts;
    text<256> failure;
    draft_resident(config, target, context, decode.sequence, decode.pattern, parts_->resident, failure);
    if (!failure.empty())
      throw argument_error("model " + name, "one that fits together", std::string(failure.view()), 220);
    table_ = table_of(*before, parts_->config, parts_->model, target, context);
    table_.weights = items(before->weights);
    table_.decode = view(decode.sequence, "decode", 1);
    table_.trace = trace_of(table_.decode);
    table_.prefill = view(prefill.sequence, "prefill", chunk_tokens(target, context));
    if (logits.sequence.has_head) table_.logits = view(logits.sequence, "logits", logits_tokens(target, context));
    if (verified.sequence.has_head) table_.verify = view(verified.sequence, "verify", verify_tokens(target, context));
    if (parts_->resident.resident.size != 0) table_.resident_decode = view(parts_->resident, "resident_decode", 1);
    table_.hash = hash_of(table_);
    if (shape.slot_count != 0) {
      batch_draft& made = parts_->batched;
      made = draft_batch(g, config, target, context, shape, *before);
      if (!made.failure.empty())
        throw argument_error("batch of " + name, "one that fits together", std::string(made.failure.view()), 220);
      parts_->batched_resident = draft_resident_rows(config, target, context, before->pattern, made, failure);
      if (!failure.empty())
        throw argument_error("batch of " + name, "one that fits together", std::string(failure.view()), 220);
      table_ = table_with(table_, made.shape, view(made.batch, "batch", made.shape.slot_count),
                          view(parts_->batched_resident, "resident_batch", made.shape.slot_count),
                          view(made.moves, "moves", made.shape.slot_count));
    }
    if (const text<256> fault = verify(table_); !fault.empty())
      throw argument_error("plan of " + name, "one that can be proven", std::string(fault.view()), 220);
  }

  template <class T, std::size_t Capacity>
  static std::span<const T> items(const bounded_list<T, Capacity>& list) {
    return list.all();
  }
  sequence view(const drafted_sequence& from, std::string_view name, std::uint32_t tokens) const {
    return {name,
            tokens,
            table_.config->num_hidden_layers,
            table_.pattern,
            items(from.prologue),
            items(from.period),
            items(from.epilogue),
            items(from.resident),
            items(from.resident_long),
            from.long_from,
            items(from.arguments),
            from.blank_offset,
            from.blank_bytes,
            items(from.values),
            from.arena_bytes,
            from.residual_offset,
            from.logits_offset,
            from.has_head,
            from.has_sampler};
  }

  struct parts {
    decoder_config config;
    std::string model;
    std::array<draft, 4> drafts;
    drafted_sequence resident, batched_resident;
    batch_draft batched;
  };
  std::unique_ptr<parts> parts_;
  plan::table table_;
};

}  // namespace intaglio::plan
