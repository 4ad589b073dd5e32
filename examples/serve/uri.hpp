// SPDX-License-Identifier: MIT
// Paths, hosts and media types, as clients send them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace intaglio::serve {

inline std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& letter : out)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return out;
}

/// "application/json" of "Application/JSON; charset=utf-8".
inline std::string media_type(std::string_view field) {
  std::string_view type = field.substr(0, field.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return in_lower_case(type);
}

/// A path with its %XX decoded once. Nothing where it does not begin at the root, or decodes to control characters.
inline std::optional<std::string> decoded_path(std::string_view path) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  if (path.empty() || path[0] != '/') return {};
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    char letter = path[i];
    if (letter == '%') {
      if (i + 2 >= path.size() || digit(path[i + 1]) < 0 || digit(path[i + 2]) < 0) return {};
      letter = static_cast<char>(digit(path[i + 1]) * 16 + digit(path[i + 2]));
      i += 2;
    }
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) return {};
    out += letter;
  }
  return out;
}

/// "localhost" of "LOCALHOST:8080", "::1" of "[::1]:8080". Empty where it is malformed.
inline std::string host_name(std::string_view host) {
  std::string_view name = host;
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    if (end == std::string_view::npos || (end + 1 != host.size() && host[end + 1] != ':')) return {};
    name = host.substr(1, end - 1);
  } else if (const auto colon = host.find(':'); colon != std::string_view::npos) {
    if (host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) return {};
    name = host.substr(0, colon);
  }
  return in_lower_case(name);
}

/// "https://chat.example:8443" -> "chat.example:8443"; empty where it is no origin of http or https.
inline std::string_view origin_host(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  return {};
}

}  // namespace intaglio::serve
