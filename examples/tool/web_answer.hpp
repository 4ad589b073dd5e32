// SPDX-License-Identifier: MIT
// What the headers of an HTTP answer say of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace intaglio::tool {

std::string lower_case(std::string text);
/// 64 hexadecimal digits in lower case.
bool is_sha256(const std::string& text);
/// A whole number without a sign; nothing where the text is another.
std::optional<std::uint64_t> number_of(std::string_view text);

/// Headers of one answer. The first line of another answer, as after a redirect, empties it.
struct web_answer {
  int status = 0;
  bool read = false;  ///< a body began
  std::string etag, modified, range, encoding;
  std::optional<std::uint64_t> length;
  std::optional<std::uint64_t> linked_size;  ///< of the file that the answer points at
  std::optional<std::string> sha256;

  /// Takes one line, without its end.
  void add(std::string_view line);
  /// Where the bytes of an answer of status 206 begin, and the length of the whole file.
  struct part {
    std::optional<std::uint64_t> first, size;
  };
  part content_range() const;
};

}  // namespace intaglio::tool
