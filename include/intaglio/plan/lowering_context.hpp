// SPDX-License-Identifier: MIT
// Sizes of the model, the profile and the pass that lowering needs and nodes do not hold.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The model, profile and pass for which nodes are lowered.
struct lowering_context {
  const decoder_config& config;
  const profile& target;
  std::uint32_t tokens;      ///< tokens of this sequence's widest pass
  std::uint32_t max_tokens;  ///< tokens of the widest sequence
  std::uint32_t context;     ///< positions of the cache
  batch_shape batch{};       ///< in a batch each row is a token of one slot; unset: no batch

  constexpr bool batched() const { return batch.slot_count != 0; }
  /// Tokens that share one read of the weights.
  constexpr std::uint32_t tile_tokens() const {
    return batched() ? (std::min)(target.work.tile_tokens, tokens) : target.work.tile_tokens;
  }
  /// Tokens that share one read of the weights in ternary_matmul. That kernel computes whole tiles, whatever the number
  /// of tokens in the state, so the sequence's tokens must be a multiple of the tile.
  constexpr std::uint32_t ternary_tile_tokens() const {
    return tokens % target.work.ternary_tile_tokens == 0 ? target.work.ternary_tile_tokens : tile_tokens();
  }
  /// Number of tokens of the vocabulary that a workgroup of the sampler sorts.
  constexpr std::uint32_t sample_slice() const {
    const bool takes_batch = target.work.sample_slices && batch.slot_count >= kernels::sample_batch;
    return takes_batch ? kernels::sample_slice(config.vocab_size, kernels::sample_lists_of_batch)
                       : kernels::sample_slice(config.vocab_size);
  }
  constexpr std::uint32_t slot_words() const {
    return batched() ? kernels::state::slot_words(context, batch.page_size) : 0;
  }
  /// Words between a state's first token and its history.
  constexpr std::uint32_t token_words() const {
    return batched() ? 1 + kernels::state::slot_pages(context, batch.page_size) : max_tokens;
  }
  /// Offset of the sampler's counters: after attention's counters, or in a batch after the slots.
  constexpr std::uint64_t sample_counters() const {
    return state_bytes() + (batched() ? 0 : kernels::attention_counter_bytes(1, config.num_attention_heads));
  }
  constexpr std::uint64_t state_bytes() const {
    return 4 * (batched() ? kernels::state::batch_words(batch.slot_count, context, batch.page_size)
                          : kernels::state::words(max_tokens, context));
  }

  /// Positions that the cache of a layer with this window holds; window 0: it sees all. The cache is a ring if the
  /// window needs fewer positions than the context has.
  constexpr std::uint32_t cache_positions(std::uint32_t window) const {
    return batched()     ? batch.pages * batch.page_size
           : window == 0 ? context
                         : (std::min)(context, kernels::ring_slots(window, (std::min)(target.prefill_tokens, context)));
  }
  constexpr bool is_ring(std::uint32_t window) const { return !batched() && cache_positions(window) < context; }
  /// Workgroups that share the spans of positions of one head. @param window, ahead of an attention
  constexpr std::uint32_t splits(std::uint32_t window, std::uint32_t ahead) const {
    if (!target.work.attention_splits || tokens != 1) return 1;
    const std::uint32_t all = kernels::attention_spans(context);
    return window == 0 || ahead >= context ? all : (std::min)(all, kernels::attention_window_spans(window + ahead));
  }
};

/// The cache of a layer that holds `positions` positions.
/// @param value_dim channels of a value; 0: head_dim
constexpr layer_cache cache_for(std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t value_dim,
                                std::uint32_t positions, std::uint32_t window, const profile& target) {
  return {positions, window, kernels::key_cache_bytes(target.cache_element, kv_heads, head_dim, positions),
          kernels::value_cache_bytes(target.cache_element, kv_heads, value_dim != 0 ? value_dim : head_dim, positions)};
}

/// Number of workgroups of a product of one token. @param weights of the product, in elements
constexpr std::uint32_t enough_groups(const profile& target, std::uint32_t most, std::uint64_t weights) {
  if (target.work.group_weights == 0) return most;
  return static_cast<std::uint32_t>(
      (std::min<std::uint64_t>)(most,
                                std::bit_floor((std::max<std::uint64_t>)(2, weights / target.work.group_weights))));
}

/// Whether a pass has a small batch of tokens (drafts, or rows of a batch), whose products have kernels of their own.
constexpr bool is_small_batch(const profile& target, std::uint32_t tokens, bool batched) {
  return target.work.chunk_tiles && tokens > 1 &&
         (tokens <= (std::max)(target.work.tile_tokens, target.verify_tokens) || batched);
}

}  // namespace intaglio::plan
