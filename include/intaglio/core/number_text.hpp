// SPDX-License-Identifier: MIT
// Numbers in messages and generated files, where no constant expression is needed (that is message.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace intaglio {

/// The shortest text that reads back as the same number, whatever the locale.
inline std::string number_text(float value) {
  std::array<char, 32> text{};
  const bool plain = std::fabs(value) >= 1e-4f && std::fabs(value) < 1e9f;  // 500000 rather than 5e+05
  const auto end = plain ? std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed)
                         : std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end.ptr);
}

}  // namespace intaglio
