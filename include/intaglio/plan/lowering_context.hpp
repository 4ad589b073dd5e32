// SPDX-License-Identifier: MIT
// What lowering knows of the whole model, the profile and the pass: sizes that are not in a node.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// What lowering needs to know of the whole: sizes that are not in the node.
struct lowering_context {
  const decoder_config& config;
  const profile& target;
  std::uint32_t tokens;      ///< of this sequence's widest pass
  std::uint32_t max_tokens;  ///< of the widest sequence
  std::uint32_t context;     ///< positions of the cache
  batch_shape batch{};       ///< where a row is a token of a slot

  constexpr bool batched() const { return batch.slot_count != 0; }
  /// Tokens that share one read of the weights.
  constexpr std::uint32_t tile_tokens() const {
    return batched() ? (std::min)(target.tile_tokens, tokens) : target.tile_tokens;
  }
  /// Tokens that share one read of the weights in ternary_matmul: as many whole tiles as there is room for tokens,
  /// whatever their count in the state.
  constexpr std::uint32_t ternary_tile_tokens() const {
    return tokens % target.ternary_tile_tokens == 0 ? target.ternary_tile_tokens : tile_tokens();
  }
  /// Tokens that a workgroup of the sampler sorts.
  constexpr std::uint32_t sample_slice() const {
    const bool many = target.sample_slices && batch.slot_count >= kernels::sample_many_rows;
    return many ? kernels::sample_slice(config.vocab_size, kernels::sample_lists_of_many_rows)
                : kernels::sample_slice(config.vocab_size);
  }
  constexpr std::uint32_t slot_words() const {
    return batched() ? kernels::state::slot_words(context, batch.page_size) : 0;
  }
  /// What stands between a state's first token and its history.
  constexpr std::uint32_t token_words() const {
    return batched() ? 1 + kernels::state::slot_pages(context, batch.page_size) : max_tokens;
  }
  /// The sampler's words behind attention's counters; those of a batch behind its slots.
  constexpr std::uint64_t sample_counters() const {
    return state_bytes() + (batched() ? 0 : kernels::attention_counter_bytes(1, config.num_attention_heads));
  }
  constexpr std::uint64_t state_bytes() const {
    return 4 * (batched() ? kernels::state::batch_words(batch.slot_count, context, batch.page_size)
                          : kernels::state::words(max_tokens, context));
  }

  /// Positions that the cache of a layer with such a window holds, 0 being none: a ring where that is less than the
  /// context.
  constexpr std::uint32_t cache_positions(std::uint32_t window) const {
    return batched()     ? batch.pages * batch.page_size
           : window == 0 ? context
                         : (std::min)(context, kernels::ring_slots(window, (std::min)(target.prefill_tokens, context)));
  }
  constexpr bool is_ring(std::uint32_t window) const { return !batched() && cache_positions(window) < context; }
  /// Workgroups that share a head's spans of positions. @param window, ahead as of an attention
  constexpr std::uint32_t splits(std::uint32_t window, std::uint32_t ahead) const {
    if (!target.attention_splits || tokens != 1) return 1;
    const std::uint32_t all = kernels::attention_spans(context);
    return window == 0 || ahead >= context ? all : (std::min)(all, kernels::attention_window_spans(window + ahead));
  }
};

/// The cache of a layer that holds so many positions.
constexpr layer_cache cache_for(std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t positions,
                                std::uint32_t window, const profile& target) {
  return {positions, window, kernels::key_cache_bytes(target.cache_element, kv_heads, head_dim, positions),
          kernels::value_cache_bytes(target.cache_element, kv_heads, head_dim, positions)};
}

/// Workgroups of a product of one token. @param weights of the product, in elements
constexpr std::uint32_t enough_groups(const profile& target, std::uint32_t most, std::uint64_t weights) {
  if (target.group_weights == 0) return most;
  return static_cast<std::uint32_t>(
      (std::min<std::uint64_t>)(most, std::bit_floor((std::max<std::uint64_t>)(2, weights / target.group_weights))));
}

/// Whether a pass is one over a few tokens, drafts or rows of a batch, whose products have kernels of their own.
constexpr bool is_few(const profile& target, std::uint32_t tokens, bool batched) {
  return target.chunk_tiles && tokens > 1 &&
         (tokens <= (std::max)(target.tile_tokens, target.verify_tokens) || batched);
}

}  // namespace intaglio::plan
