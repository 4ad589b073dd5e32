// SPDX-License-Identifier: MIT
// How a ready-made prompt is read.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::io {

/// How the texts of control tokens in a prompt are taken.
enum class prompt_markup : std::uint8_t {
  read,   ///< they are those tokens
  plain,  ///< they are text like any other
};

}  // namespace intaglio::io
