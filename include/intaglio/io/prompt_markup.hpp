// SPDX-License-Identifier: MIT
// How control tokens in a complete prompt are read.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::io {

/// How the texts of control tokens in a prompt are treated.
enum class prompt_markup : std::uint8_t {
  read,   ///< they become control tokens
  plain,  ///< they are plain text
};

}  // namespace intaglio::io
