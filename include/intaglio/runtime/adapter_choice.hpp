// SPDX-License-Identifier: MIT
// Which adapter a session adds to the model's matrices: the choice that a caller makes, and its words in the state that
// kernels read.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/kernels/state.hpp"

namespace intaglio {

/// A LoRA adapter of a plan with room for adapters (plan::adapter_room), named by its number in the plan.
struct adapter_choice {
  std::uint32_t number = 0;  ///< 1 .. the number of adapters in the plan; 0: no adapter
  float scale = 1;           ///< factor of what the adapter adds, finite; 0: the same as no adapter
  friend bool operator==(const adapter_choice&, const adapter_choice&) = default;
};

namespace runtime {

/// Checks that a plan can serve a choice of adapter. Every choice of no adapter becomes the same value.
/// @param of the choice  @param count number of adapters in the plan
/// @error argument_error: a number over `count`, or a scale that is not finite
inline adapter_choice checked_adapter(const adapter_choice& of, std::uint32_t count) {
  if (of.number > count)
    throw argument_error("adapter", count == 0 ? "none: the plan has room for none" : "0 .. " + std::to_string(count),
                         std::to_string(of.number));
  if (!std::isfinite(of.scale)) throw argument_error("scale of an adapter", "a finite number", number_text(of.scale));
  return of.number == 0 || of.scale == 0 ? adapter_choice{0, 0} : of;
}

/// Writes the choice at its offset in kernels::state; `words` is the start of the state.
inline void write_adapter(const adapter_choice& of, std::span<std::uint32_t> words) {
  words[kernels::state::adapter] = of.number;
  words[kernels::state::adapter_scale] = of.number == 0 ? 0 : std::bit_cast<std::uint32_t>(of.scale);
}

/// A key that separates the cached pages of sessions with different adapters: 0 for no adapter, else a number above all
/// numbers of pages (page_pool).
inline std::uint64_t adapter_key(const adapter_choice& of) {
  return of.number == 0
             ? 0
             : std::uint64_t{1} << 63 | std::uint64_t{of.number} << 32 | std::bit_cast<std::uint32_t>(of.scale);
}

}  // namespace runtime
}  // namespace intaglio
