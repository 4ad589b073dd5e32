// SPDX-License-Identifier: MIT
// What a layer keeps of the tokens before: sizes of its KV cache and state, and which layers share one; the pool of a
// batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/profile.hpp"

namespace intaglio::plan {

/// The KV cache of a layer (kernels/cache_layout.hpp). Where a window bounds what is read, it is a ring: position p
/// is at p % positions.
struct layer_cache {
  std::uint32_t positions = 0;  ///< that it holds
  std::uint32_t window = 0;     ///< positions that a token sees, itself among them; 0: all
  std::uint64_t key_bytes = 0, value_bytes = 0;
  std::uint64_t kept_bytes = 0;  ///< of a recurrent layer: its state behind the last token, whatever the position
  bool shared = false;  ///< it is that of the last layer before with one of its own of this window and these sizes
  constexpr std::uint64_t bytes() const { return key_bytes + value_bytes; }
  /// Whether a layer with this cache may use another layer's.
  constexpr bool may_use(const layer_cache& other) const {
    return !other.shared && positions == other.positions && window == other.window && key_bytes == other.key_bytes &&
           value_bytes == other.value_bytes;
  }
  /// Whether a pass from `position` on finds what it needs after positions below `written` were written.
  constexpr bool holds(std::uint32_t position, std::uint32_t written) const {
    if (positions == 0) return true;  // it has no keys
    const std::uint32_t oldest = window != 0 && position + 1 > window ? position + 1 - window : 0;
    return written <= std::uint64_t{oldest} + positions;
  }
};

/// The layer whose cache a layer uses; the layer itself where it shares one and there is none before it.
/// @param caches by kind
constexpr std::uint32_t cache_owner(const layer_pattern& pattern, std::span<const layer_cache> caches,
                                    std::uint32_t layer) {
  const layer_cache& own = caches[pattern(layer)];
  for (std::uint32_t before = layer; own.shared && before-- > 0;)
    if (own.may_use(caches[pattern(before)])) return before;
  return layer;
}

/// Copies of recurrent layers' states at earlier positions that a session has room for.
/// @param bytes of a state of all layers; 0: there are none
constexpr std::uint32_t state_copies(std::uint64_t bytes) {
  constexpr std::uint64_t room = std::uint64_t{256} << 20;
  constexpr std::uint32_t least = 4, most = 64;
  return bytes == 0 ? 0 : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room / bytes, least, most));
}
/// States that a batch has: of slots, a copy for each of these besides those of a session alone, of a prompt, and the
/// one through which states are copied.
constexpr std::uint64_t batch_states(std::uint32_t slot_count, std::uint64_t bytes) {
  return bytes == 0 ? 0 : std::uint64_t{2} * slot_count + state_copies(bytes) + 2;
}

/// Sessions that decode together, and the pool that their KV caches share.
struct batch_shape {
  std::uint32_t slot_count = 0;  ///< sessions at once; 0: no batch
  std::uint32_t page_size = 64;  ///< positions of a page: a multiple of 8 that divides 256, or a multiple of that
  std::uint32_t pages = 0;       ///< of the pool; 0: as many as all slots take when they are full
  chunk_arithmetic coded_products =
      chunk_arithmetic::exact;  ///< of passes, with coded weights. exact: the bits of a session alone. halves: as
                                ///< prompts have it, several times faster; what a session says then depends on
                                ///< whether there are others, not on who they are: alone it has its own bits
  std::uint32_t groups = 1;     ///< of a stage of a cut plan: sets of slot_count slots, which take turns in passes
  constexpr std::uint32_t all_slots() const { return groups * slot_count; }
  friend constexpr bool operator==(const batch_shape&, const batch_shape&) = default;
};

}  // namespace intaglio::plan
