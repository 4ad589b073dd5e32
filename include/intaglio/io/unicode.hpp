// SPDX-License-Identifier: MIT
// UTF-8 and the classes of code points that tokenizers need. Normalization form C: nfc.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "intaglio/io/unicode_tables.hpp"

namespace intaglio::io {

/// Class of a code point, with the numbers of unicode_class_runs.
enum class unicode_class : std::uint8_t {
  other = 0,
  caseless = 1,  ///< a letter that is neither upper nor lower case
  number = 2,
  space = 3,
  punctuation = 4,
  upper = 5,  ///< upper or title case
  lower = 6,
  mark = 7,
  symbol = 8
};

/// Whether a class is one of letters.
constexpr bool is_letter(unicode_class kind) {
  return kind == unicode_class::upper || kind == unicode_class::lower || kind == unicode_class::caseless;
}

/// One step through UTF-8 text: a code point, or one byte that belongs to none.
struct code_point {
  char32_t value;       ///< U+FFFD where the byte is not UTF-8
  std::uint32_t bytes;  ///< bytes taken, at least 1
  bool valid;
};

/// Reads the code point at `text[at]` by the strict rules: no overlong forms, no surrogates, at most U+10FFFF.
constexpr code_point decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + k])); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {static_cast<char32_t>(first), 1, true};
  constexpr code_point broken{U'\uFFFD', 1, false};
  const std::size_t left = text.size() - at;
  const auto continues = [&](std::size_t k) { return k < left && (byte(k) & 0xC0) == 0x80; };
  if (first < 0xC2 || first > 0xF4 || !continues(1)) return broken;
  if (first < 0xE0) return {static_cast<char32_t>((first & 0x1F) << 6 | (byte(1) & 0x3F)), 2, true};
  if (!continues(2)) return broken;
  if (first < 0xF0) {
    const std::uint32_t value = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    return value < 0x800 || (value >= 0xD800 && value < 0xE000) ? broken
                                                                : code_point{static_cast<char32_t>(value), 3, true};
  }
  if (!continues(3)) return broken;
  const std::uint32_t value = (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  return value < 0x10000 || value > 0x10FFFF ? broken : code_point{static_cast<char32_t>(value), 4, true};
}

/// Appends a code point as UTF-8.
constexpr void append_utf8(std::string& out, char32_t value) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto code = static_cast<std::uint32_t>(value);
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

/// Whether `text` is well-formed UTF-8 (no surrogates, no overlong forms).
constexpr bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode_utf8(text, at);
    if (!next.valid) return false;
    at += next.bytes;
  }
  return true;
}

/// Length of the longest start of `text` that does not end inside an unfinished UTF-8 sequence. Bytes that can never
/// become valid count as complete.
constexpr std::size_t complete_utf8(std::string_view text) {
  const std::size_t reach = (std::min<std::size_t>)(3, text.size());
  for (std::size_t back = 1; back <= reach; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte < 0xC2 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 1;
    if (length <= back) return text.size();
    if (back >= 2) {
      // The second byte already decides: E0 80, ED A0, F0 80 and F4 90 start nothing.
      const auto second = static_cast<unsigned char>(text[text.size() - back + 1]);
      if ((byte == 0xE0 && second < 0xA0) || (byte == 0xED && second >= 0xA0) || (byte == 0xF0 && second < 0x90) ||
          (byte == 0xF4 && second >= 0x90))
        return text.size();
    }
    return text.size() - back;
  }
  return text.size();
}

/// Appends `text` with U+FFFD for invalid UTF-8: one for each longest start of a sequence, as the Unicode standard
/// recommends.
inline void append_replacing_invalid(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode_utf8(text, at);
    std::size_t bytes = next.bytes;
    if (next.valid) {
      out.append(text.substr(at, bytes));
    } else {
      append_utf8(out, U'\uFFFD');
      while (bytes < 3 && at + bytes < text.size() && complete_utf8(text.substr(at, bytes + 1)) == 0) ++bytes;
    }
    at += bytes;
  }
}

/// The class of a code point, found by binary search.
constexpr unicode_class search_unicode_class(char32_t value) {
  const std::uint32_t key = static_cast<std::uint32_t>(value) << 4 | 15;
  const auto* run = std::ranges::upper_bound(unicode_class_runs, key) - 1;  // constexpr in libstdc++'s debug mode too
  return static_cast<unicode_class>(*run & 15);
}

/// Classes of the code points below 0x300, by code point.
inline constexpr auto low_unicode_classes = [] {
  std::array<unicode_class, 0x300> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = search_unicode_class(static_cast<char32_t>(i));
  return out;
}();

/// Class of a code point, 0 .. U+10FFFF.
constexpr unicode_class class_of(char32_t value) {
  return value < low_unicode_classes.size() ? low_unicode_classes[value] : search_unicode_class(value);
}

}  // namespace intaglio::io
