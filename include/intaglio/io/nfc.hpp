// SPDX-License-Identifier: MIT
// Unicode's normalization form C (UAX 15): characters are decomposed, marks are put in canonical order, and the result
// is composed. Bytes that are not UTF-8 are unchanged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/nfc_unicode_tables.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

namespace nfc {

/// Hangul syllables are computed from a leading consonant, a vowel, and one of 28 trailing consonants, of which 0 is
/// none.
inline constexpr std::uint32_t syllable = 0xAC00, lead = 0x1100, vowel = 0x1161, trail = 0x11A7;
inline constexpr std::uint32_t leads = 19, vowels = 21, trails = 28, syllables = leads * vowels * trails;  ///< counts
inline constexpr std::uint32_t stray_byte = 0x110000;  ///< this and above: a byte that belongs to no character
/// Canonical_Combining_Class of a character; 0 for a starter.
inline std::uint8_t combining_class(std::uint32_t c) {
  if (c < 0x300 || c >= stray_byte) return 0;
  const std::uint32_t key = c << 8 | 0xFF;
  const auto* run = std::ranges::upper_bound(combining_class_runs, key) - 1;
  return static_cast<std::uint8_t>(*run & 0xFF);
}
/// @{
/// The parts of a row of canonical_decompositions.
inline constexpr std::uint64_t pair_bits = (std::uint64_t{1} << 40) - 1;
constexpr std::uint32_t first_of(std::uint64_t row) { return static_cast<std::uint32_t>(row >> 20 & 0xFFFFF); }
constexpr std::uint32_t second_of(std::uint64_t row) { return static_cast<std::uint32_t>(row & 0xFFFFF); }
/// @}
/// Appends the full canonical decomposition.
inline void decompose(std::uint32_t c, std::vector<std::uint32_t>& out) {
  if (c >= syllable && c < syllable + syllables) {
    const std::uint32_t at = c - syllable;
    out.push_back(lead + at / (vowels * trails));
    out.push_back(vowel + at % (vowels * trails) / trails);
    if (at % trails != 0) out.push_back(trail + at % trails);
    return;
  }
  const auto* found = std::ranges::lower_bound(canonical_decompositions, std::uint64_t{c} << 40);
  if (c >= stray_byte || found == std::end(canonical_decompositions) || *found >> 40 != c) return out.push_back(c);
  decompose(first_of(*found), out);
  if (second_of(*found) != 0) out.push_back(second_of(*found));  // a second character never decomposes further
}

/// The character that two compose to, or 0.
inline std::uint32_t compose(std::uint32_t first, std::uint32_t second) {
  if (first >= lead && first < lead + leads && second >= vowel && second < vowel + vowels)
    return syllable + ((first - lead) * vowels + (second - vowel)) * trails;
  if (first >= syllable && first < syllable + syllables && (first - syllable) % trails == 0 && second > trail &&
      second < trail + trails)
    return first + (second - trail);
  const auto pair_at = [](std::uint16_t index) { return canonical_decompositions[index] & pair_bits; };
  const std::uint64_t wanted = std::uint64_t{first} << 20 | second;
  const auto* found = std::ranges::lower_bound(canonical_compositions, wanted, {}, pair_at);
  if (found == std::end(canonical_compositions) || pair_at(*found) != wanted) return 0;
  return static_cast<std::uint32_t>(canonical_decompositions[*found] >> 40);
}

/// Puts marks in the order of their classes; marks of one class keep their order.
inline void order_marks(std::vector<std::uint32_t>& text) {
  const auto mark = [](std::uint32_t c) { return combining_class(c) != 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), mark);
    const auto end = std::find_if_not(begin, text.end(), mark);
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

/// Composes in place: each character with the last starter, unless a character of the same or a higher class is between
/// them.
inline void compose_all(std::vector<std::uint32_t>& text) {
  std::size_t out = 0, starter = text.size();
  int between = -1;  // class of the last character kept since the starter; -1: none
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint32_t c = text[i];
    const int own = combining_class(c);
    if (starter < out && between < own) {
      if (const std::uint32_t whole = compose(text[starter], c); whole != 0) {
        text[starter] = whole;
        continue;
      }
    }
    if (own == 0) starter = out, between = -1;
    else between = own;
    text[out++] = c;
  }
  text.resize(out);
}

}  // namespace nfc

/// `text` in normalization form C.
inline std::string to_nfc(std::string_view text) {
  std::vector<std::uint32_t> characters;
  bool plain = true;
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode_utf8(text, at);
    if (next.valid) nfc::decompose(static_cast<std::uint32_t>(next.value), characters);
    else characters.push_back(nfc::stray_byte + static_cast<unsigned char>(text[at]));
    plain = plain && next.value < 0x300;
    at += next.bytes;
  }
  if (plain) return std::string(text);
  nfc::order_marks(characters);
  nfc::compose_all(characters);
  std::string out;
  for (const std::uint32_t c : characters)
    c < nfc::stray_byte ? append_utf8(out, static_cast<char32_t>(c))
                        : out.push_back(static_cast<char>(c - nfc::stray_byte));
  return out;
}

}  // namespace intaglio::io
