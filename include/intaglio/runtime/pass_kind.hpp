// SPDX-License-Identifier: MIT
// Which of a plan's sequences a job runs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

namespace intaglio::runtime {

/// The kinds of passes of an executor, each with a recorded sequence of dispatches.
enum class pass_kind : std::uint8_t {
  decode,
  prefill,
  logits,
  probe,
  verify,
  verify_short,  ///< over at most executor::short_tokens tokens
  prefill_long   ///< over a long prompt's chunk of device_plan::long_prefill
};
/// The number of kinds of passes.
inline constexpr std::size_t pass_kinds = 7;

}  // namespace intaglio::runtime
