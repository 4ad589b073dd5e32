// SPDX-License-Identifier: MIT
// Text of pages that the tool writes.
#pragma once

#include <string>
#include <string_view>

namespace intaglio::tool {

/// The text with the characters escaped that HTML reads as its own.
inline std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    c == '<'   ? out += "&lt;"
    : c == '>' ? out += "&gt;"
    : c == '&' ? out += "&amp;"
    : c == '"' ? out += "&quot;"
               : out += c;
  return out;
}

}  // namespace intaglio::tool
