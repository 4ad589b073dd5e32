// SPDX-License-Identifier: MIT
// Which adapter a session has beside the model's matrices: as a caller says it, and the words of the state that kernels
// read.
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

/// An adapter of a plan with room for some (plan::adapter_room), by its number there.
struct adapter_choice {
  std::uint32_t number = 0;  ///< 1 .. as many as there are; 0: none
  float scale = 1;           ///< of what it adds, finite; 0: as none
  friend bool operator==(const adapter_choice&, const adapter_choice&) = default;
};

namespace runtime {

/// A choice that the plan can serve; every choice of no adapter becomes one value.
/// @param count of the plan's adapters  @error argument_error: a number that there is not, a scale that is no number
inline adapter_choice checked_adapter(const adapter_choice& of, std::uint32_t count) {
  if (of.number > count)
    throw argument_error("adapter", count == 0 ? "none: the plan has room for none" : "0 .. " + std::to_string(count),
                         std::to_string(of.number));
  if (!std::isfinite(of.scale)) throw argument_error("scale of an adapter", "a finite number", number_text(of.scale));
  return of.number == 0 || of.scale == 0 ? adapter_choice{0, 0} : of;
}

/// Writes the choice where kernels::state says; `words` is the start of the state.
inline void write_adapter(const adapter_choice& of, std::span<std::uint32_t> words) {
  words[kernels::state::adapter] = of.number;
  words[kernels::state::adapter_scale] = of.number == 0 ? 0 : std::bit_cast<std::uint32_t>(of.scale);
}

/// Tells apart what sessions with several adapters leave in caches: 0 of none, else above all numbers of pages
/// (page_pool).
inline std::uint64_t adapter_key(const adapter_choice& of) {
  return of.number == 0
             ? 0
             : std::uint64_t{1} << 63 | std::uint64_t{of.number} << 32 | std::bit_cast<std::uint32_t>(of.scale);
}

}  // namespace runtime
}  // namespace intaglio
