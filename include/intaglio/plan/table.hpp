// SPDX-License-Identifier: MIT
// The plan as plain data: what the executor, the explainer and the reference read. A model's plan is a few constexpr
// arrays of these; nothing here is a template over the model. Offsets are bytes; each kind of layer is planned once and
// stamped for every layer that is one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/dispatch.hpp"
#include "intaglio/plan/layer_cache.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/sequence.hpp"
#include "intaglio/plan/weight.hpp"

namespace intaglio::plan {

/// Everything that one engraved model needs at run time.
struct table {
  std::string_view model;  ///< "bitnet_2b_4t"; empty where the model's type has no name
  std::string_view profile;
  std::span<const kernels::device_class* const> classes;  ///< that the profile is made for, the strongest first
  const decoder_config* config = nullptr;
  std::uint32_t first_layer = 0;   ///< of a stage of a cut plan (plan/cut.hpp): the model's layer that is its layer 0
  std::uint32_t model_layers = 0;  ///< of a stage: layers of the whole model; 0: config has them all
  std::span<const weight> weights;
  std::uint64_t global_weight_bytes = 0;  ///< weights outside the layers
  std::uint64_t layer_weight_bytes = 0;   ///< of one layer that has the weights of every kind
  std::uint32_t context = 0;              ///< positions that a sequence may have
  std::uint32_t max_tokens = 1;           ///< of the widest sequence; state.tokens has that many words
  std::uint32_t ring_size = 0;            ///< drawn tokens that the ring holds
  kernels::element cache_element = kernels::element::f16;
  layer_pattern pattern;                                       ///< of which kind each layer is
  std::array<layer_cache, layer_pattern::max_kinds> caches{};  ///< of a layer, by its kind
  sequence decode, prefill, logits;
  sequence verify;  ///< a token and drafts of those behind it: draws what follows each and takes what was drafted right
  sequence resident_decode;  ///< decode with all layers in one dispatch; without layers where there is none
                             ///< (plan/resident.hpp)
  trace_shape trace;         ///< of decode
  batch_shape shape;         ///< of batch
  sequence batch;  ///< a token of each slot; without layers where the plan has no batch (plan/engrave_batch.hpp)
  sequence resident_batch;  ///< batch with all layers in one dispatch; without layers where there is none
                            ///< (plan/resident_rows.hpp)
  sequence moves;           ///< a slot's positions between caches and pool (kernel pages)
  std::uint64_t hash = 0;   ///< hash_of (plan/table_hash.hpp); keys the pipeline cache

  /// Bytes of the arena that decode, prefill and verify share.
  constexpr std::uint64_t arena_bytes() const {
    return (std::max)({decode.arena_bytes, resident_decode.arena_bytes, prefill.arena_bytes, verify.arena_bytes});
  }
  constexpr std::uint64_t weight_bytes() const {
    const std::uint32_t layers = config->num_hidden_layers;
    std::uint64_t out = global_weight_bytes + layers * layer_weight_bytes;
    for (const weight& each : weights)
      if (each.per_layer) out -= (layers - copies(each)) * aligned(each.bytes);
    return out;
  }
  /// Whether a layer has a weight; all have those that are not per layer.
  constexpr bool has(const weight& w, std::uint32_t layer) const {
    return !w.per_layer || (w.kinds >> pattern(layer) & 1) != 0;
  }
  /// Tensors, or stacks of them, that a weight stands for: one for each layer that has it.
  constexpr std::uint32_t copies(const weight& w) const {
    return w.per_layer ? pattern.count_any(w.kinds, config->num_hidden_layers) : 1;
  }
  /// Which of them a layer's is.
  constexpr std::uint32_t copy_of(const weight& w, std::uint32_t layer) const {
    return w.per_layer ? pattern.count_any(w.kinds, layer) : 0;
  }
  /// Words of kernels/state.hpp, then attention's counters and the sampler's, then the progress of all layers in one.
  constexpr std::uint64_t state_bytes() const {
    return progress_offset() +
           (resident_decode.resident.empty() ? 0 : kernels::layers::progress_bytes(resident_decode.layers));
  }
  constexpr std::uint64_t progress_offset() const {
    return 4ull * kernels::state::words(max_tokens, context) +
           kernels::attention_counter_bytes(1, config->num_attention_heads) + kernels::sample_counter_bytes(max_tokens);
  }
  /// The pool's part for a layer of a kind.
  constexpr layer_cache pool(std::uint8_t kind) const {
    const layer_cache& own = caches[kind];
    if (own.positions == 0) return own;  // it has no keys
    const std::uint64_t positions = std::uint64_t{shape.pages} * shape.page_size;
    return {static_cast<std::uint32_t>(positions),
            own.window,
            own.key_bytes / ((own.positions + 7) / 8) * (positions / 8),
            kernels::is_coded(cache_element) ? own.value_bytes / ((own.positions + 7) / 8) * (positions / 8)
                                             : own.value_bytes / own.positions * positions,
            own.kept_bytes,
            own.shared};
  }
  constexpr std::uint64_t pool_bytes() const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      if (!caches[kind].shared) out += pattern.count(kind, config->num_hidden_layers) * pool(kind).bytes();
    return out;
  }
  constexpr std::uint32_t slot_pages() const { return kernels::state::slot_pages(context, shape.page_size); }
  /// Words of kernels/state.hpp, then the sampler's counters, then the progress of all layers in one.
  constexpr std::uint64_t batch_state_bytes() const {
    return batch_progress_offset() +
           (resident_batch.resident.empty() ? 0 : kernels::layers::progress_bytes(resident_batch.layers));
  }
  constexpr std::uint64_t batch_progress_offset() const {
    return 4 * kernels::state::batch_words(shape.slot_count, context, shape.page_size) +
           kernels::sample_counter_bytes(shape.slot_count);
  }
  constexpr bool is_for_cpus() const { return !classes.empty() && classes.front()->is_cpu; }
  constexpr const layer_cache& cache_of(std::uint32_t layer) const { return caches[pattern(layer)]; }
  /// The layer whose cache a layer uses: itself, but where it has none of its own.
  constexpr std::uint32_t cache_owner(std::uint32_t layer) const { return plan::cache_owner(pattern, caches, layer); }
  constexpr std::uint64_t cache_bytes() const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      if (!caches[kind].shared) out += pattern.count(kind, config->num_hidden_layers) * caches[kind].bytes();
    return out;
  }
  /// What all recurrent layers keep, one behind the other: their state at one position.
  constexpr std::uint64_t kept_bytes() const { return kept_offset(config->num_hidden_layers); }
  constexpr std::uint64_t kept_offset(std::uint32_t layer) const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      out += pattern.count(kind, layer) * caches[kind].kept_bytes;
    return out;
  }
  /// Copies of it at earlier positions that a session has room for, from which it goes on after a step back.
  constexpr std::uint32_t snapshots() const { return state_copies(kept_bytes()); }
  /// Bytes of the recurrent state and its copies.
  constexpr std::uint64_t recurrent_bytes() const { return (1 + snapshots()) * kept_bytes(); }
  /// Copies that sessions of a batch share, from which those go on whose tokens begin alike: one of each slot's, and
  /// as many as a session alone has.
  constexpr std::uint32_t batch_snapshots() const { return kept_bytes() == 0 ? 0 : shape.slot_count + snapshots(); }
  /// Bytes of the recurrent states of slots, of a prompt, of copies, and of the one through which states are copied.
  constexpr std::uint64_t batch_recurrent_bytes() const {
    return batch_states(shape.slot_count, kept_bytes()) * kept_bytes();
  }
};

}  // namespace intaglio::plan
