// SPDX-License-Identifier: MIT
// Finds added tokens in a text, as tokenizers' AddedVocabulary does: from left to right, the longest one at each
// position, by the rules of each token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/special_tokens.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// The code point that ends at `end`, or one byte that belongs to no code point. `end` is above 0.
constexpr code_point code_point_before(std::string_view text, std::size_t end) {
  for (std::size_t bytes = 1; bytes <= 4 && bytes <= end; ++bytes)
    if (const code_point found = decode_utf8(text.substr(0, end), end - bytes); found.valid && found.bytes == bytes)
      return found;
  return {U'\uFFFD', 1, false};
}

/// Whether \w of a regular expression matches: letters, marks, numbers and connectors.
constexpr bool is_word(const code_point& c) {
  if (!c.valid) return false;
  const unicode_class kind = class_of(c.value);
  return is_letter(kind) || kind == unicode_class::mark || kind == unicode_class::number || c.value == U'_' ||
         c.value == U'\u203F' || c.value == U'\u2040' || c.value == U'\u200C' || c.value == U'\u200D';
}

/// The texts of added tokens. Built once, then only read.
class added_tokens {
 public:
  added_tokens() = default;
  /// @param entries texts (not empty) and their tokens  @param rules of some of them
  added_tokens(std::vector<std::pair<std::string_view, std::int32_t>> entries, std::vector<added_token> rules)
      : texts_(std::move(entries)), rules_(std::move(rules)) {
    sort_once(rules_, [](const auto& a, const auto& b) { return a.id < b.id; });
  }

  /// Calls plain(begin, end) for each stretch without added tokens, and token(begin, id) for each of them, in order.
  /// @param allowed allowed(begin, bytes, id): whether a token may be found there
  template <class Allowed, class Plain, class Token>
  void split(std::string_view text, Allowed&& allowed, Plain&& plain, Token&& token) const {
    std::size_t at = 0, spaces_end = 0;  // spaces_end: end of the white space that the last token took
    for (std::size_t from = 0;;) {
      const special_match match = texts_.find(text, from, allowed);
      if (match.id < 0) break;
      const added_token rule = rule_of(match.id);
      std::size_t begin = match.begin, end = match.begin + match.bytes;
      from = end;
      if (rule.single_word && touches_word(text, begin, end)) continue;
      if (rule.lstrip)
        for (code_point c{}; begin > at && is_space(c = code_point_before(text, begin));) begin -= c.bytes;
      if (rule.lstrip) begin = (std::max)(begin, at);
      if (rule.rstrip) {
        end = (std::max)(end, spaces_end);
        for (code_point c{}; end < text.size() && is_space(c = decode_utf8(text, end));) end += c.bytes;
        spaces_end = end;
      }
      if (begin > at) plain(at, begin);
      if (end > begin) token(match.begin, match.id);  // else another token took all of it
      at = end;  // the search continues after the text itself: a token may begin in white space that another one took
    }
    if (at < text.size()) plain(at, text.size());
  }

 private:
  static constexpr bool is_space(const code_point& c) { return c.valid && class_of(c.value) == unicode_class::space; }
  static constexpr bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
    return (begin > 0 && is_word(code_point_before(text, begin))) ||
           (end < text.size() && is_word(decode_utf8(text, end)));
  }
  added_token rule_of(std::int32_t id) const {
    const auto at = std::lower_bound(rules_.begin(), rules_.end(), id,
                                     [](const added_token& rule, std::int32_t wanted) { return rule.id < wanted; });
    return at != rules_.end() && at->id == id ? *at : added_token{.id = id};
  }

  special_tokens texts_;
  std::vector<added_token> rules_;  ///< ascending by id
};

}  // namespace intaglio::io
