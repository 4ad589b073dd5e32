// SPDX-License-Identifier: MIT
// The plan as plain data, which the executor, the explainer and the reference read. A model's plan is a few constexpr
// arrays of these types; none of them is a template over the model. Offsets are in bytes. Each kind of layer is planned
// once; its dispatches are recorded for every layer of that kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "intaglio/core/array_view.hpp"
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

/// The plan of one model for one profile: everything that run time needs.
struct table {
  std::string_view model;                                  ///< "bitnet_2b_4t"; empty where the model's type has no name
  std::string_view profile;                                ///< name of the profile that the plan is made for
  array_view<const kernels::device_class* const> classes;  ///< the profile's, the most capable first
  const decoder_config* config = nullptr;                  ///< the model's config
  std::uint32_t first_layer = 0;   ///< of a stage of a cut plan (plan/cut.hpp): the whole model's number of its layer 0
  std::uint32_t model_layers = 0;  ///< of a stage: layers of the whole model; 0: the plan is not a stage
  array_view<const weight> weights;       ///< all weights, of the whole model and of layers
  std::uint64_t global_weight_bytes = 0;  ///< weights outside the layers
  std::uint64_t layer_weight_bytes = 0;   ///< weights of one layer, with space for the weights of every kind of layer
  std::uint32_t context = 0;              ///< positions that a sequence may have
  std::uint32_t max_tokens = 1;           ///< tokens of the widest sequence; state.tokens has that many words
  std::uint32_t ring_size = 0;            ///< drawn tokens that the ring holds
  kernels::element cache_element = kernels::element::f16;      ///< element type of the KV caches
  layer_pattern pattern;                                       ///< the kind of each layer
  std::array<layer_cache, layer_pattern::max_kinds> caches{};  ///< caches of a layer, by its kind
  sequence decode;                                             ///< feeds one token and draws the next one
  sequence prefill;                                            ///< feeds a chunk of a prompt, without logits
  sequence logits;  ///< feeds a chunk and gives the logits of each of its tokens
  sequence verify;  ///< one token and drafts of the tokens after it: draws the token after each, and accepts drafts
                    ///< that were right
  sequence resident_decode;  ///< decode with the resident dispatch; has no layers if there is none (plan/resident.hpp)
  trace_shape trace;         ///< features that decode reports
  batch_shape shape;         ///< slots and pages of the batch
  sequence batch;            ///< one token of each slot; has no layers if the plan has no batch
  sequence resident_batch;   ///< batch with the resident dispatch; has no layers if there is none
  sequence moves;            ///< copies a slot's positions between caches and pool (kernel pages)
  std::uint64_t hash = 0;    ///< hash_of (plan/table_hash.hpp); keys the pipeline cache

  /// Bytes of the arena that decode, prefill and verify share.
  constexpr std::uint64_t arena_bytes() const {
    return (std::max)({decode.arena_bytes, resident_decode.arena_bytes, prefill.arena_bytes, verify.arena_bytes});
  }
  /// Bytes of all weights in device memory.
  constexpr std::uint64_t weight_bytes() const {
    const std::uint32_t layers = config->num_hidden_layers;
    std::uint64_t out = global_weight_bytes + layers * layer_weight_bytes;
    for (const weight& each : weights)
      if (each.per_layer) out -= (layers - copies(each)) * aligned(each.bytes);
    return out;
  }
  /// Whether a layer has a weight. All layers have a weight that is not per layer.
  constexpr bool has(const weight& w, std::uint32_t layer) const {
    return !w.per_layer || (w.kinds >> pattern(layer) & 1) != 0;
  }
  /// Number of copies of a weight in memory: one for each layer that has it.
  constexpr std::uint32_t copies(const weight& w) const {
    return w.per_layer ? pattern.count_any(w.kinds, config->num_hidden_layers) : 1;
  }
  /// Index of a layer's copy of a weight.
  constexpr std::uint32_t copy_of(const weight& w, std::uint32_t layer) const {
    return w.per_layer ? pattern.count_any(w.kinds, layer) : 0;
  }
  /// Bytes of the state: words of kernels/state.hpp, counters of attention and of the sampler, progress of the resident
  /// dispatch.
  constexpr std::uint64_t state_bytes() const {
    return progress_offset() +
           (resident_decode.resident.empty() ? 0 : kernels::layers::progress_bytes(resident_decode.layers));
  }
  /// Offset of the resident dispatch's progress in the state.
  constexpr std::uint64_t progress_offset() const {
    return 4ull * kernels::state::words(max_tokens, context) +
           kernels::attention_counter_bytes(1, config->num_attention_heads) + kernels::sample_counter_bytes(max_tokens);
  }
  /// The pool of a layer of a kind.
  constexpr layer_cache pool(std::uint8_t kind) const {
    const layer_cache& own = caches[kind];
    if (own.positions == 0) return own;  // the layer has no keys
    const std::uint64_t positions = std::uint64_t{shape.pages} * shape.page_size;
    return {static_cast<std::uint32_t>(positions),
            own.window,
            own.key_bytes / ((own.positions + 7) / 8) * (positions / 8),
            kernels::is_coded(cache_element) ? own.value_bytes / ((own.positions + 7) / 8) * (positions / 8)
                                             : own.value_bytes / own.positions * positions,
            own.kept_bytes,
            own.shared};
  }
  /// Bytes of the pools of all layers.
  constexpr std::uint64_t pool_bytes() const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      if (!caches[kind].shared) out += pattern.count(kind, config->num_hidden_layers) * pool(kind).bytes();
    return out;
  }
  /// Pages of a session whose context is full.
  constexpr std::uint32_t slot_pages() const { return kernels::state::slot_pages(context, shape.page_size); }
  /// Bytes of the batch's state: words of kernels/state.hpp, counters of the sampler, progress of the resident
  /// dispatch.
  constexpr std::uint64_t batch_state_bytes() const {
    return batch_progress_offset() +
           (resident_batch.resident.empty() ? 0 : kernels::layers::progress_bytes(resident_batch.layers));
  }
  /// Offset of the resident dispatch's progress in the batch's state.
  constexpr std::uint64_t batch_progress_offset() const {
    return 4 * kernels::state::batch_words(shape.slot_count, context, shape.page_size) +
           kernels::sample_counter_bytes(shape.slot_count);
  }
  /// Whether the profile is for CPU drivers.
  constexpr bool is_for_cpus() const { return !classes.empty() && classes.front()->is_cpu; }
  /// The sizes of a layer's cache.
  constexpr const layer_cache& cache_of(std::uint32_t layer) const { return caches[pattern(layer)]; }
  /// The layer whose cache a layer uses: the layer itself, or an earlier one if it has no cache of its own.
  constexpr std::uint32_t cache_owner(std::uint32_t layer) const { return plan::cache_owner(pattern, caches, layer); }
  /// Bytes of the KV caches of all layers.
  constexpr std::uint64_t cache_bytes() const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      if (!caches[kind].shared) out += pattern.count(kind, config->num_hidden_layers) * caches[kind].bytes();
    return out;
  }
  /// Bytes of the state of all recurrent layers at one position.
  constexpr std::uint64_t kept_bytes() const { return kept_offset(config->num_hidden_layers); }
  /// Offset of a layer's recurrent state in the state of all layers at one position.
  constexpr std::uint64_t kept_offset(std::uint32_t layer) const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      out += pattern.count(kind, layer) * caches[kind].kept_bytes;
    return out;
  }
  /// Number of copies of the recurrent state at earlier positions for which a session has room. A session continues
  /// from one of them after a step back.
  constexpr std::uint32_t snapshots() const { return state_copies(kept_bytes()); }
  /// Bytes of the recurrent state and its copies.
  constexpr std::uint64_t recurrent_bytes() const { return (1 + snapshots()) * kept_bytes(); }
  /// Number of copies of the recurrent state that sessions of a batch share. A session continues from one whose tokens
  /// its own begin with. There is one for each slot, and the number that a single session has.
  constexpr std::uint32_t batch_snapshots() const { return kept_bytes() == 0 ? 0 : shape.slot_count + snapshots(); }
  /// Bytes of all recurrent states of a batch (batch_states).
  constexpr std::uint64_t batch_recurrent_bytes() const {
    return batch_states(shape.slot_count, kept_bytes()) * kept_bytes();
  }
};

}  // namespace intaglio::plan
