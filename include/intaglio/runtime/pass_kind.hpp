// SPDX-License-Identifier: MIT
// Which of a plan's sequences a job runs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

namespace intaglio::runtime {

enum class pass_kind : std::uint8_t {
  decode,
  prefill,
  logits,
  probe,
  verify,
  verify_few  ///< over at most executor::few_tokens
};
inline constexpr std::size_t pass_kinds = 6;

}  // namespace intaglio::runtime
