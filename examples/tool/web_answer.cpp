// SPDX-License-Identifier: MIT
#include "web_answer.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

namespace intaglio::tool {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

namespace {

/// Bytes of "sha-256=:BASE64:" or "sha-256=BASE64" as hexadecimal.
std::optional<std::string> sha256_of_digest(const std::string& header) {
  const std::size_t at = lower_case(header).find("sha-256=");
  if (at == std::string::npos) return std::nullopt;
  std::string bits, out;
  for (std::size_t i = at + 8; i < header.size() && header[i] != ','; ++i) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = letters.find(header[i]);
    if (value == std::string_view::npos) continue;
    for (int bit = 5; bit >= 0; --bit) bits += (value >> bit & 1) != 0 ? '1' : '0';
  }
  for (std::size_t i = 0; i + 4 <= bits.size() && out.size() < 64; i += 4)
    out += "0123456789abcdef"[std::stoul(bits.substr(i, 4), nullptr, 2)];
  if (!is_sha256(out)) return std::nullopt;
  return out;
}

}  // namespace

void web_answer::add(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    if (const std::size_t blank = line.find(' '); blank != std::string_view::npos)
      status = static_cast<int>(number_of(line.substr(blank + 1, 3)).value_or(0));
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = lower_case(std::string(line.substr(0, colon)));
  std::string value(line.substr(colon + 1));
  value.erase(0, value.find_first_not_of(' '));
  if (name == "etag") etag = value;
  else if (name == "last-modified") modified = value;
  else if (name == "content-range") range = value;
  else if (name == "content-encoding") encoding = value;
  else if (name == "content-length") length = number_of(value);
  else if (name == "x-linked-size") linked_size = number_of(value);
  else if (name == "repr-digest" || name == "digest") sha256 = sha256_of_digest(value);
  else if (name == "x-linked-etag" && value.size() == 66 && is_sha256(lower_case(value.substr(1, 64))))
    sha256 = lower_case(value.substr(1, 64));  // a file of Git LFS
}

web_answer::part web_answer::content_range() const {
  // bytes FIRST-LAST/ALL
  const std::string_view text = range;
  const std::size_t dash = text.find('-'), slash = text.find('/');
  const bool sound =
      text.starts_with("bytes ") && dash != std::string_view::npos && slash != std::string_view::npos && dash < slash;
  return {sound ? number_of(text.substr(6, dash - 6)) : std::nullopt,
          slash != std::string_view::npos ? number_of(text.substr(slash + 1)) : std::nullopt};
}

}  // namespace intaglio::tool
