// SPDX-License-Identifier: MIT
// A model's plan for sessions that decode together. It is the table of the model for one session, whose prefill reads
// prompts, with additional sequences. `batch` computes one token of each slot, with a resident dispatch where there is
// one. `moves` copies positions between the caches and the slots' pages: from the caches after a prompt, and to the
// caches where slots share pages.
#pragma once

#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/resident_rows.hpp"
#include "intaglio/plan/resident_rows_normed.hpp"
#include "intaglio/plan/resident_ternary_rows.hpp"

namespace intaglio::plan {

/// The sequences of a batch, before they are frozen: its passes, and the copies between caches and pool.
struct batch_draft {
  text<256> failure;
  batch_shape shape;
  drafted_sequence batch, moves;
};

/// Returns the shape with its pages counted. @error in `failure`: the value that is out of range
constexpr batch_shape checked_shape(batch_shape shape, const ir::graph& g, const profile& target, std::uint32_t context,
                                    text<256>& failure) {
  const auto refuse = [&](auto... parts) {
    if (failure.empty()) (failure.append(parts), ...);
  };
  // Rows of a tile are computed together, and a tile may have no row past the last slot.
  if (shape.slot_count < 2 || shape.slot_count > 256 ||
      (shape.slot_count > target.work.tile_tokens && shape.slot_count % target.work.tile_tokens != 0))
    refuse("batch: expected 2 to ", target.work.tile_tokens, " slots or a multiple of that up to 256, found ",
           shape.slot_count);
  if (shape.coded_products == chunk_arithmetic::f16 && target.coded_chunks != chunk_arithmetic::f16)
    refuse("batch: expected products as a profile whose prompts are exact has them, found f16");
  constexpr std::uint32_t octet = kernels::cache_octet, span = kernels::attention_span;
  if (shape.page_size < octet || shape.page_size % octet != 0 ||
      (span % shape.page_size != 0 && shape.page_size % span != 0))
    refuse("batch: expected pages of 8, 16, 32, 64, 128 or a multiple of 256 positions, found ", shape.page_size);
  for (std::uint8_t block = 0; block < g.pattern.kinds(); ++block)
    if (const std::uint64_t kept = kept_of_block(g, block); kept > (std::uint64_t{1} << 33) / shape.slot_count)
      refuse("batch: expected at most ", (std::uint64_t{1} << 33) / kept,
             " slots, the states of whose layers shaders count in 32 bits, found ", shape.slot_count);
  if (!failure.empty()) return shape;
  const std::uint32_t full = kernels::state::slot_pages(context, shape.page_size);
  if (shape.pages == 0) shape.pages = shape.slot_count * full;
  if (shape.pages < full)
    refuse("batch: expected at least the ", full, " pages that one slot may take, found ", shape.pages);
  std::uint64_t widest = 0;
  for (const auto& o : g.ops)
    if (o.kind == ir::op_kind::cache_write) widest = (std::max)(widest, std::uint64_t{o.kv_heads} * o.head_dim);
  if (widest != 0 && std::uint64_t{shape.pages} * shape.page_size > (std::uint64_t{1} << 31) / widest)
    refuse("batch: expected at most ", (std::uint64_t{1} << 31) / widest,
           " positions in the pool, whose elements shaders count in 32 bits, found ",
           std::uint64_t{shape.pages} * shape.page_size);
  return shape;
}
/// Drafts the sequences of a batch.
/// @param alone the last draft of the model for one session, whose weights the batch shares
constexpr batch_draft draft_batch(const ir::graph& g, const decoder_config& config, const profile& target,
                                  std::uint32_t context, batch_shape shape, const draft& alone) {
  batch_draft out;
  out.failure = alone.failure;
  if (out.failure.empty()) out.shape = checked_shape(shape, g, target, context, out.failure);
  for (const auto& o : g.ops)
    if (o.traced != 0 && out.failure.empty())
      out.failure.append(
          "batch: expected a model without a trace, which passes of several tokens do not keep, found one with");
  if (!out.failure.empty()) return out;
  weight_list weights;
  for (const weight& each : alone.weights.all()) weights.weights.push_back(each);
  draft_sequence(g, config, target, context, {out.shape.slot_count, true, true, out.shape}, weights, out.batch,
                 out.failure);
  if (out.failure.empty() && weights.weights.size() != alone.weights.size)
    out.failure.append("batch: expected the weights of the other sequences, found ",
                       weights.weights.size() - alone.weights.size, " more");
  for (std::size_t i = 0; i < weights.weights.size() && out.failure.empty(); ++i)
    if (weights.weights[i].kinds != alone.weights.all()[i].kinds)
      out.failure.append("batch: expected ", weights.weights[i].sources[0].view(),
                         " in the kinds of layers of the other sequences, found it in more");
  if (!out.failure.empty()) return out;

  const placement nowhere;
  const lowering_context c{config, target, out.shape.slot_count, widest_tokens(target, context), context, out.shape};
  pages_lowering lower{g, nowhere, c, weights};
  std::vector<dispatch> period;
  for (std::uint8_t kind = 0; kind < g.pattern.kinds(); ++kind)
    for (const auto& o : g.ops)
      if (o.kind == ir::op_kind::cache_write && o.block == kind) period.push_back(lower.move(o));
  out.moves.period.assign(period, "dispatches in a period", out.failure);
  return out;
}

/// The batch sequence with the resident dispatch; it has no layers if no resident kernel can do the pass.
constexpr drafted_sequence draft_resident_rows(const decoder_config& config, const profile& target,
                                               std::uint32_t context, const layer_pattern& pattern,
                                               const batch_draft& made, text<256>& failure) {
  if (made.shape.slot_count == 0 || !has_resident_steps(made.batch)) return {};
  table sizes;
  sizes.config = &config, sizes.context = context, sizes.shape = made.shape;
  drafted_sequence out =
      resident_rows_layers(config, target, made.shape, sizes.batch_progress_offset(), pattern, made.batch)
          .made(failure);
  if (out.resident.size == 0)
    out = resident_rows_normed_layers(config, target, made.shape, sizes.batch_progress_offset(), pattern, made.batch)
              .made(failure);
  if (out.resident.size == 0)
    out = resident_ternary_rows_layers(config, target, made.shape, sizes.batch_progress_offset(), pattern, made.batch)
              .made(failure);
  return out;
}

/// Plans the sequences of a batch for a model type.
template <engravable Model>
constexpr batch_draft make_batch_draft(const profile& target, std::uint32_t context, batch_shape shape,
                                       const draft& alone) {
  return draft_batch(ir::traced<Model>(), Model::config, target, context, shape, alone);
}

/// The table of the model for one session with the sequences of a batch added.
constexpr table table_with(const table& alone, const batch_shape& shape, sequence batch, sequence resident,
                           sequence moves) {
  table out = alone;
  out.shape = shape;
  out.batch = batch;
  out.batch.batched = true;
  if (!resident.resident.empty()) out.resident_batch = resident, out.resident_batch.batched = true;
  out.moves = moves;
  out.moves.batched = true;
  out.hash = hash_of(out);
  return out;
}

/// A model's plan for one profile with a batch. `table` is everything that run time needs.
/// @error does not fit: one sentence that says what was expected and what was found
template <engravable Model, const profile& Profile, batch_shape Shape,
          std::uint32_t Context = Model::config.max_position_embeddings>
struct engraved_batch {
 private:
  using alone = engraved<Model, Profile, Context>;
  static constexpr batch_draft made = make_batch_draft<Model>(Profile, Context, Shape, alone::drafted);
  static constexpr frozen_sequence<made.batch.prologue.size, made.batch.period.size, made.batch.epilogue.size,
                                   made.batch.values.size>
      batch{made.batch};
  static constexpr frozen_sequence<0, made.moves.period.size, 0, 0> moves{made.moves};
  struct resident_draft {
    text<256> failure;
    drafted_sequence sequence;
  };
  static constexpr resident_draft made_resident = [] {
    resident_draft out;
    if (made.failure.empty())
      out.sequence = draft_resident_rows(Model::config, Profile, Context, alone::drafted.pattern, made, out.failure);
    return out;
  }();
  static constexpr frozen_sequence<made_resident.sequence.prologue.size, made_resident.sequence.period.size,
                                   made_resident.sequence.epilogue.size, made_resident.sequence.values.size,
                                   made_resident.sequence.resident.size, 0, made_resident.sequence.arguments.size>
      resident{made_resident.sequence};
  static_assert(fits_together<made.failure>::model_fits, "intaglio: the batch does not fit together");
  static_assert(fits_together<made_resident.failure>::model_fits, "intaglio: the batch does not fit together");

 public:
  static constexpr plan::table table =
      table_with(alone::table, made.shape, alone::view("batch", made.shape.slot_count, made.batch, batch),
                 alone::view("resident_batch", made.shape.slot_count, made_resident.sequence, resident),
                 alone::view("moves", made.shape.slot_count, made.moves, moves));
  static_assert(proven<verify_sequence(table, &plan::table::batch)>::model_fits, "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::resident_batch)>::model_fits,
                "intaglio: the plan cannot be proven");
  static_assert(proven<verify_sequence(table, &plan::table::moves)>::model_fits, "intaglio: the plan cannot be proven");
};

}  // namespace intaglio::plan
