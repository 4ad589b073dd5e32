// SPDX-License-Identifier: MIT
// WordPiece, BERT's tokenizer: text is cleaned, split into words and punctuation, and each word into the longest tokens
// that the vocabulary has. Source: Devlin et al. 2019; tokenizers' BertNormalizer, BertPreTokenizer and WordPiece.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/case_unicode_tables.hpp"
#include "intaglio/io/nfc.hpp"
#include "intaglio/io/token_texts.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Largest number of characters of a word; a longer one is the unknown token.
inline constexpr std::size_t longest_word = 100;

/// The lower case of a character where that is one character; else the character itself.
inline std::uint32_t lower_case(std::uint32_t c) {
  constexpr std::uint64_t field = (1u << 21) - 1;
  const auto* run = std::ranges::upper_bound(lower_case_runs, std::uint64_t{c} << 43 | ((std::uint64_t{1} << 43) - 1));
  if (run == std::begin(lower_case_runs)) return c;
  --run;
  const auto first = static_cast<std::uint32_t>(*run >> 43), last = static_cast<std::uint32_t>(*run >> 22 & field),
             step = static_cast<std::uint32_t>(*run >> 21 & 1) + 1;
  if (c > last || (c - first) % step != 0) return c;
  return c + static_cast<std::uint32_t>(*run & field) - (1u << 20);
}

/// Whether a character is in a run whose start has its lowest bit set.
template <std::size_t Count>
bool is_in_runs(const std::uint32_t (&starts)[Count], std::uint32_t c) {
  return (*(std::ranges::upper_bound(starts, c << 1 | 1) - 1) & 1) != 0;
}
/// Whether a character is a mark that takes no space (Mn).
inline bool is_accent(std::uint32_t c) {
  if (c < 0x300 || class_of(static_cast<char32_t>(c)) != unicode_class::mark) return false;
  return !is_in_runs(spacing_mark_runs, c);
}

/// The encoder of "bert" vocabularies.
class wordpiece {
 public:
  /// @param ordinary index of normal tokens by their text in the file  @param unknown the token of a word without
  /// pieces
  [[gnu::cold]] wordpiece(const vocabulary& file, token_texts texts, token_index ordinary, std::int32_t unknown)
      : texts_(std::move(texts)), ordinary_(std::move(ordinary)), unknown_(unknown),
        lowercase_(file.lowercase.value_or(true)), strip_accents_(file.strip_accents.value_or(lowercase_)) {}

  /// Appends the tokens of a stretch of text.
  [[gnu::cold]] void encode(std::string_view text, std::vector<std::int32_t>& out) const {
    std::string word(word_start);
    std::size_t characters = 0;
    const auto end_word = [&] {
      if (characters != 0) encode_word(word, characters, out);
      word.resize(word_start.size());
      characters = 0;
    };
    for (const std::uint32_t c : normalized(text)) {
      const auto value = static_cast<char32_t>(c);
      const bool apart = is_punctuation(value);
      if (apart || c == ' ' || class_of(value) == unicode_class::space) end_word();
      if (c == ' ' || class_of(value) == unicode_class::space) continue;
      append_utf8(word, value), ++characters;
      if (apart) end_word();
    }
    end_word();
  }

 private:
  static constexpr std::string_view word_start = "\xE2\x96\x81";  // U+2581

  /// Punctuation, with ASCII's signs that are no letters or digits, whatever Unicode calls them.
  static bool is_punctuation(char32_t c) {
    if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    return class_of(c) == unicode_class::punctuation;
  }
  /// Invalid UTF-8, and control, format and private characters.
  static bool is_dropped(const code_point& next) {
    if (!next.valid || next.value == 0 || next.value == U'\uFFFD') return true;
    if (next.value == '\t' || next.value == '\n' || next.value == '\r') return false;
    return is_in_runs(control_runs, static_cast<std::uint32_t>(next.value));
  }
  /// Whether a character is an ideograph, which is a word of its own.
  static bool is_ideograph(char32_t c) {
    struct range {
      char32_t first, last;
    };
    constexpr range ranges[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    return std::any_of(std::begin(ranges), std::end(ranges),
                       [&](const range& each) { return c >= each.first && c <= each.last; });
  }

  [[gnu::cold]] std::vector<std::uint32_t> normalized(std::string_view text) const {
    std::vector<std::uint32_t> out;
    for (std::size_t at = 0; at < text.size();) {
      const code_point next = decode_utf8(text, at);
      at += next.bytes;
      if (is_dropped(next)) continue;
      const auto c = static_cast<std::uint32_t>(next.value);
      const bool ideograph = is_ideograph(next.value);
      if (ideograph) out.push_back(' ');
      if (strip_accents_) nfc::decompose(c, out);
      else out.push_back(c);
      if (ideograph) out.push_back(' ');
    }
    if (strip_accents_) {
      nfc::order_marks(out);
      std::erase_if(out, is_accent);
    }
    if (!lowercase_) return out;
    std::vector<std::uint32_t> lower;
    lower.reserve(out.size());
    for (const std::uint32_t c : out) {
      lower.push_back(c == 0x130 ? 'i' : lower_case(c));
      if (c == 0x130) lower.push_back(0x307);  // the only one whose lower case is two characters
    }
    return lower;
  }

  /// @param word after word_start
  [[gnu::cold]] void encode_word(std::string_view word, std::size_t characters, std::vector<std::int32_t>& out) const {
    const std::size_t before = out.size();
    if (characters > longest_word) return out.push_back(unknown_);
    for (std::size_t at = 0, least = word_start.size(); at < word.size(); least = 0) {
      std::size_t end = (std::min)(word.size(), at + ordinary_.longest());
      std::int32_t found = -1;
      for (; end > at + least && found < 0; --end)
        if (end == word.size() || (static_cast<unsigned char>(word[end]) & 0xC0) != 0x80)
          found = ordinary_.find(texts_, word.substr(at, end - at));
      if (found < 0) {
        out.resize(before);
        return out.push_back(unknown_);
      }
      out.push_back(found);
      at = end + 1;
    }
  }

  token_texts texts_;  ///< as the file has them
  token_index ordinary_;
  std::int32_t unknown_;
  bool lowercase_, strip_accents_;
};

}  // namespace intaglio::io
