// SPDX-License-Identifier: MIT
// A request's query: the names that each path knows, and their values. A name that its path does not know is refused,
// as an unknown field of a body is.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api_error.hpp"
#include "http.hpp"
#include "request_fields.hpp"
#include "uri.hpp"

namespace intaglio::serve {

/// The names that a path's query may have, with a blank after each.
struct path_query {
  std::string_view method, path;  ///< of a route (api.cpp)
  std::string_view used;          ///< handlers read these
  std::string_view taken;         ///< clients send these: they change nothing of the answer
};

/// The paths whose query has names of their own. Azure's clients send api-version to every path.
inline constexpr std::array<path_query, 12> path_queries{{
    // Lists come whole, so that there is no next page. client_version is Codex's, beta Anthropic's.
    {"GET", "/v1/models", "", "limit after before order after_id before_id beta client_version "},
    {"GET", "/v1/models/", "", "beta client_version "},
    {"POST", "/v1/messages", "", "beta "},
    {"POST", "/v1/messages/count_tokens", "", "beta "},
    // A stored response comes whole: where to go on in a stream, and with how much padding, has no effect.
    {"GET", "/v1/responses/", "stream include include[] ", "starting_after include_obfuscation "},
    {"GET", "/props", "model ", ""},
    {"GET", "/lora-adapters", "model ", ""},
    {"POST", "/lora-adapters", "model ", ""},
    {"GET", "/slots", "model fail_on_no_slot ", ""},
    {"POST", "/slots/", "action ", ""},
    {"GET", "/health", "", "verbose "},
    {"GET", "/plan", "model ", ""},
}};

/// What a query says: names and values in their order, %XX decoded.
/// @throws api_error 400: a name or a value decodes to control characters, or does not decode
inline std::vector<std::pair<std::string, std::string>> query_members(std::string_view query) {
  const auto decoded = [](std::string_view text, const std::string& of, const char* what) {
    const auto found = decoded_path('/' + std::string(text));
    if (!found) refuse_field(of, std::string("a ") + what + " with %XX for what an address cannot have", "another");
    return found->substr(1);
  };
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view each = rest.substr(0, rest.find('&'));
    rest.remove_prefix(each.size() == rest.size() ? each.size() : each.size() + 1);
    if (each.empty()) continue;
    const std::size_t equal = std::min(each.find('='), each.size());
    const std::string name = decoded(each.substr(0, equal), "query", "name");
    out.emplace_back(name, decoded(each.substr(std::min(equal + 1, each.size())), printable(name, 60), "value"));
  }
  return out;
}

/// What a query says of a name; nothing where it is not there. @throws api_error 400: it is there twice
inline std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  std::optional<std::string> out;
  for (auto& [key, value] : query_members(query)) {
    if (key != name) continue;
    if (out) refuse_field(std::string(name), "one value", "another one");
    out = std::move(value);
  }
  return out;
}

/// @param path of the route that the request takes
/// @throws api_error 400 naming the first name of the query that the path does not know
inline void require_known_query(const http_request& head, std::string_view path) {
  if (head.query.empty()) return;
  const std::string_view method = head.method == "HEAD" ? std::string_view("GET") : std::string_view(head.method);
  std::vector<std::string_view> known{"api-version"};
  for (const path_query& each : path_queries)
    if (each.method == method && each.path == path)
      for (std::string_view list : {each.used, each.taken})
        for (; !list.empty(); list.remove_prefix(known.back().size() + 1))
          known.push_back(list.substr(0, list.find(' ')));
  for (const auto& [name, value] : query_members(head.query))
    require_known(name, known, printable(name, 60), "a name that this path's query may have");
}

}  // namespace intaglio::serve
