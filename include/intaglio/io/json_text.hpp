// SPDX-License-Identifier: MIT
// Base of readers that read large JSON piece by piece, without a document: safetensors headers and indexes.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "intaglio/core/error.hpp"

namespace intaglio::io {

/// Limits of JSON texts that are read.
struct json_limits {
  static constexpr std::size_t depth = 64;
  static constexpr std::size_t string_bytes = std::size_t{1} << 20;
};

/// Passes the parts of a document to a reader. It takes the base class, so a program has one parser for all readers. It
/// does not use json::sax_parse, which adds the readers of CBOR, MessagePack, UBJSON and BSON (40 kB).
inline void parse_json(std::string_view text, nlohmann::json_sax<nlohmann::json>& reader) {
  auto input = nlohmann::detail::input_adapter(text.begin(), text.end());
  nlohmann::detail::parser<nlohmann::json, decltype(input)>(std::move(input)).sax_parse(&reader);
}

/// Base of the SAX readers below: names the file in every error.
class json_reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;

  json_reader(std::string path, std::uint64_t offset) : path_(std::move(path)), offset_(offset) {}

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& problem) override {
    std::string text =
        problem.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    if (const auto at = text.find(": "); at != std::string::npos) text = text.substr(at + 2);
    fail(position == 0 ? 0 : position - 1, "not valid JSON: " + printable(text, 160), {},
         token.empty() ? "" : "'" + printable(token, 60) + "'");
  }

 protected:
  [[noreturn, gnu::cold]] void fail(std::size_t position, std::string_view what, std::string_view expected = {},
                                    std::string_view found = {}) const {
    throw file_error(path_, offset_ + position, what, expected, found);
  }
  [[noreturn, gnu::cold]] void refuse(std::string_view what, std::string_view expected = {},
                                      std::string_view found = {}) const {
    throw file_error(path_, std::nullopt, what, expected, found);
  }

 private:
  std::string path_;
  std::uint64_t offset_;
};

/// Parses `text` with a reader. The lexer copies strings, so long ones are refused in advance.
inline void read_json(std::string_view text, const std::string& path, std::uint64_t offset, json_reader& reader) {
  // The lexer treats NUL as the end of the text and would ignore the rest.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw file_error(path, offset + nul, "not valid JSON", "text", "a NUL byte");
  bool inside = false;
  for (std::size_t i = 0, start = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\') ++i;
    else if (text[i] == '"') {
      inside = !inside;
      start = i;
    }
    if (inside && i - start > json_limits::string_bytes)
      throw file_error(path, offset + start, "a string is too long",
                       "at most " + std::to_string(json_limits::string_bytes) + " bytes", "more");
  }
  parse_json(text, reader);
}

}  // namespace intaglio::io
