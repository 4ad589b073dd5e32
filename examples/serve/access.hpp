// SPDX-License-Identifier: MIT
// Checks who may send requests: keys, the Host field (against names that are rebound to this address), origins of
// pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http.hpp"

namespace intaglio::serve {

struct access_rules {
  std::string api_key;               ///< empty: none is asked for
  std::vector<std::string> hosts;    ///< names that clients may call the server by, besides localhost and addresses
  std::vector<std::string> origins;  ///< of pages elsewhere that may ask; "*": any
};

/// Compares in a time that depends only on the length of the received text.
bool same_text(std::string_view expected, std::string_view found);

/// @throws api_error 403: a foreign Host or Origin; 401: no key or another one
void require_access(const access_rules& rules, const http_request& head, bool needs_key);

/// CORS fields for an origin that may ask; none for others.
std::vector<std::pair<std::string, std::string>> cors_fields(const access_rules& rules, const http_request& head);

}  // namespace intaglio::serve
