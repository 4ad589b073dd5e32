// SPDX-License-Identifier: MIT
// Uses a session of any model.
#include <intaglio/session.hpp>
#include <string>
#include <string_view>

#if defined(VULKAN_HPP) || defined(INCLUDE_NLOHMANN_JSON_HPP_)
#error "expected the caller's face without Vulkan-Hpp and JSON"
#endif

std::string goes_on(intaglio::basic_session& with, std::string_view text) {
  std::string out;
  for (const std::string_view piece : with.complete(text, {.max_tokens = 8})) out += piece;
  return out;
}
