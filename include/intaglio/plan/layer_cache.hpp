// SPDX-License-Identifier: MIT
// What a layer keeps of earlier tokens: sizes of its KV cache and recurrent state, layers that share a cache, and the
// pool of a batch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/profile.hpp"

namespace intaglio::plan {

/// The KV cache of a layer (kernels/cache_layout.hpp). Where a window bounds what is read, it is a ring: position p
/// is at p % positions.
struct layer_cache {
  std::uint32_t positions = 0;  ///< positions that the cache holds
  std::uint32_t window = 0;     ///< positions that a token sees, itself included; 0: all
  std::uint64_t key_bytes = 0, value_bytes = 0;
  std::uint64_t kept_bytes = 0;  ///< of a recurrent layer: bytes of its state, the same at every position
  bool shared = false;           ///< it is the last earlier layer's that has its own, with this window and sizes
  constexpr std::uint64_t bytes() const { return key_bytes + value_bytes; }
  /// Bytes of a position's keys, or of its values. Keys fill whole octets of positions.
  constexpr std::uint64_t position_bytes(bool of_keys) const {
    return of_keys ? key_bytes / ((positions + 7) / 8 * 8) : value_bytes / positions;
  }
  /// Whether a layer with this cache may use another layer's.
  constexpr bool may_use(const layer_cache& other) const {
    return !other.shared && positions == other.positions && window == other.window && key_bytes == other.key_bytes &&
           value_bytes == other.value_bytes;
  }
  /// Whether a pass from `position` on can read all positions it needs, after positions below `written` were written.
  constexpr bool holds(std::uint32_t position, std::uint32_t written) const {
    if (positions == 0) return true;  // the layer has no keys
    const std::uint32_t oldest = window != 0 && position + 1 > window ? position + 1 - window : 0;
    return written <= std::uint64_t{oldest} + positions;
  }
};

/// The layer whose cache a layer uses; the layer itself if none before it has a cache to share.
/// @param caches by kind of layer
constexpr std::uint32_t cache_owner(const layer_pattern& pattern, array_view<const layer_cache> caches,
                                    std::uint32_t layer) {
  const layer_cache& own = caches[pattern(layer)];
  for (std::uint32_t before = layer; own.shared && before-- > 0;)
    if (own.may_use(caches[pattern(before)])) return before;
  return layer;
}

/// Number of copies of the recurrent state at earlier positions for which a session reserves memory.
/// @param bytes of the state of all layers; 0: there is none
constexpr std::uint32_t state_copies(std::uint64_t bytes) {
  constexpr std::uint64_t room = std::uint64_t{256} << 20;
  constexpr std::uint32_t least = 4, most = 64;
  return bytes == 0 ? 0 : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room / bytes, least, most));
}
/// Number of recurrent states of a batch: one of each slot, one copy for each slot, the copies of a single session, one
/// of a prompt, and one through which states are copied.
constexpr std::uint64_t batch_states(std::uint32_t slot_count, std::uint64_t bytes) {
  return bytes == 0 ? 0 : std::uint64_t{2} * slot_count + state_copies(bytes) + 2;
}

/// Sessions that decode together, and the pool that their KV caches share.
struct batch_shape {
  std::uint32_t slot_count = 0;  ///< sessions at once; 0: the plan has no batch
  std::uint32_t page_size = 64;  ///< positions of a page: a multiple of 8 that divides 256, or a multiple of 256
  std::uint32_t pages = 0;       ///< pages of the pool; 0: enough for all slots when they are full
  chunk_arithmetic coded_products =
      chunk_arithmetic::exact;  ///< of passes, with coded weights. exact: the bits of a session that decodes by itself.
                                ///< f16: the arithmetic of prompts, several times faster; a session's bits then depend
                                ///< on whether other sessions decode, not on which; a single session has exact's bits
  std::uint32_t groups = 1;     ///< of a stage of a cut plan: sets of slot_count slots, which take turns
  constexpr std::uint32_t all_slots() const { return groups * slot_count; }
  friend constexpr bool operator==(const batch_shape&, const batch_shape&) = default;
};

}  // namespace intaglio::plan
