// SPDX-License-Identifier: MIT
// Uses a session of any model.
#include <string>
#include <string_view>

import intaglio;

std::string goes_on(intaglio::basic_session& with, std::string_view text) {
  std::string out;
  for (const std::string_view piece : with.complete(text, {.max_tokens = 8})) out += piece;
  return out;
}
