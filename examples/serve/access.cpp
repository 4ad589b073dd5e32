// SPDX-License-Identifier: MIT
#include "access.hpp"

#include <algorithm>
#include <array>

#include "api_error.hpp"
#include "uri.hpp"

namespace intaglio::serve {
namespace {

/// An address says by itself where a request goes: only names can be made to mean something else.
bool is_address(std::string_view host) {
  if (host.find(':') != std::string_view::npos)
    return host.find_first_not_of("0123456789abcdef:.%") == std::string_view::npos;
  return !host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_known(const access_rules& rules, const std::string& host) {
  return host == "localhost" || is_address(host) ||
         std::find(rules.hosts.begin(), rules.hosts.end(), host) != rules.hosts.end();
}

/// The password of "Basic ...", as browsers send it for a page.
std::string basic_password(std::string_view text) {
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char letter : text) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto at = letters.find(letter);
    if (at == std::string_view::npos) break;
    bits = (bits << 6 | static_cast<unsigned>(at)) & 0xFFFFu;
    count += 6;
    if (count >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xFFu);
  }
  const auto colon = out.find(':');
  return colon == std::string::npos ? std::string{} : out.substr(colon + 1);
}

bool has_key(const access_rules& rules, std::string_view field) {
  const auto blank = field.find(' ');
  if (blank == std::string_view::npos) return false;
  const std::string scheme = in_lower_case(field.substr(0, blank));
  field.remove_prefix(std::min(field.find_first_not_of(' ', blank), field.size()));
  if (scheme == "bearer") return same_text(rules.api_key, field);
  return scheme == "basic" && same_text(rules.api_key, basic_password(field));
}

bool allows_origin(const access_rules& rules, std::string_view origin) {
  return std::any_of(rules.origins.begin(), rules.origins.end(),
                     [&](const std::string& each) { return each == "*" || each == origin; });
}

/// Names of fields with commas between them, and nothing that could end a line.
bool is_field_list(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char each) {
    return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           std::string_view("-_.,! \t").find(each) != std::string_view::npos;
  });
}

}  // namespace

bool same_text(std::string_view expected, std::string_view found) {
  volatile unsigned difference = expected.size() == found.size() ? 0 : 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto a = static_cast<unsigned char>(found[i]),
               b = static_cast<unsigned char>(expected.empty() ? '\0' : expected[i % expected.size()]);
    difference = difference | (static_cast<unsigned>(a) ^ static_cast<unsigned>(b));
  }
  return difference == 0;
}

void require_access(const access_rules& rules, const http_request& head, bool needs_key) {
  const auto hosts =
      std::count_if(head.fields.begin(), head.fields.end(), [](const auto& each) { return each.first == "host"; });
  const std::string host = host_name(head.field("host"));
  if (hosts != 1 || host.empty())
    throw api_error(400, "Host: expected one name or address, found none or another form");
  if (!is_known(rules, host))
    throw api_error(403, "Host: expected localhost, an address, or a name allowed by --allow-host, found another", {},
                    "foreign_host");
  if (const auto origin = head.field("origin"); !origin.empty()) {
    const bool own = !origin_host(origin).empty() && origin_host(origin) == head.field("host");
    if (!own && !allows_origin(rules, origin))
      throw api_error(403, "Origin: expected this server's own page, or one allowed by --cors-origin, found another",
                      {}, "foreign_origin");
  }
  // Anthropic's clients have a field of their own for it.
  const auto own = head.field("x-api-key");
  if (needs_key && !rules.api_key.empty() && head.method != "OPTIONS" && !has_key(rules, head.field("authorization")) &&
      (own.empty() || !same_text(rules.api_key, own)))
    throw api_error(401, "the key is missing or wrong: expected it as 'Authorization: Bearer KEY'", {},
                    "invalid_api_key");
}

std::vector<std::pair<std::string, std::string>> cors_fields(const access_rules& rules, const http_request& head) {
  const auto origin = head.field("origin");
  if (origin.empty() || !allows_origin(rules, origin)) return {};
  std::vector<std::pair<std::string, std::string>> out{{"Access-Control-Allow-Origin", std::string(origin)},
                                                       {"Vary", "Origin, Access-Control-Request-Headers"},
                                                       {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"}};
  if (head.method != "OPTIONS") return out;
  // Clients add fields of their own; those that are not known here are harmless, so an allowed origin may send any.
  const auto asked = head.field("access-control-request-headers");
  out.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS");
  out.emplace_back("Access-Control-Allow-Headers",
                   asked.empty() || !is_field_list(asked) ? "Authorization, Content-Type" : std::string(asked));
  if (head.field("access-control-request-private-network") == "true")
    out.emplace_back("Access-Control-Allow-Private-Network", "true");
  out.emplace_back("Access-Control-Max-Age", "600");
  return out;
}

}  // namespace intaglio::serve
