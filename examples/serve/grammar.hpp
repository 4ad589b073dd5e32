// SPDX-License-Identifier: MIT
// Context-free grammars over bytes: rules with alternatives of literals, sets of bytes and other rules. text_match.hpp
// follows a text through one.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace intaglio::serve {

using byte_set = std::bitset<256>;
/// The bytes of [first, last].
byte_set bytes_between(unsigned char first, unsigned char last);

/// Rules may call themselves, but not before a byte is read. Building and finishing take time in proportion to the
/// number of symbols (times its logarithm).
class grammar {
 public:
  using rule = std::uint32_t;
  using part = std::variant<std::string, byte_set, rule>;
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max() / 4;
  static constexpr std::size_t most_symbols = 200'000, most_sets = 4096;

  rule add_rule() { return rule_count_++; }
  /// A rule of one alternative.
  rule add_rule(std::initializer_list<part> only) {
    const rule out = add_rule();
    add(out, only);
    return out;
  }
  /// One more way to read `to`. @throws std::length_error: over 200,000 symbols or 4,096 different sets of bytes
  void add(rule to, std::span<const part> parts);
  void add(rule to, std::initializer_list<part> parts) { add(to, std::span(parts.begin(), parts.size())); }

  /// Finishes the grammar. Call it once, after all rules were added. Alternatives that no text fits are dropped.
  /// @throws std::invalid_argument: no text fits, or a rule calls itself before a byte is read
  void finish(rule start);

  /// Bytes of the shortest text.
  std::uint32_t least_bytes() const { return rest_[start_]; }
  /// Bytes that are in literals: the vocabulary needs a token for each.
  const byte_set& literal_bytes() const { return literal_bytes_; }
  std::size_t symbol_count() const { return symbols_.size(); }

 private:
  friend class text_match;
  enum class kind : std::uint8_t { end, bytes, rule };
  struct symbol {
    kind is;
    std::uint32_t index;  ///< of the set or rule
  };
  std::uint32_t set_of(const byte_set& bytes);
  std::uint32_t set_of(unsigned char byte);
  void sort_alternatives();
  void settle_lengths();
  void drop_what_never_ends();
  void rank_rules();
  void classify_bytes();
  std::span<const std::uint32_t> alternatives_of(rule of) const {
    return std::span(alternatives_).subspan(first_[of], first_[of + 1] - first_[of]);
  }
  bool can_be_empty(const symbol& at) const { return at.is == kind::rule && rule_least_[at.index] == 0; }

  std::vector<symbol> symbols_;                        ///< alternatives one after the other, each up to its end
  std::vector<std::pair<rule, std::uint32_t>> added_;  ///< alternatives as they came: whose, and where they begin
  std::vector<std::uint32_t> alternatives_, first_;    ///< where they begin, by rule: [first_[r], first_[r + 1])
  std::vector<byte_set> sets_;
  std::unordered_map<byte_set, std::uint32_t> set_indices_;
  std::array<std::uint32_t, 256> single_sets_{};  ///< of one byte: its set's index plus 1; 0: not yet there
  std::vector<std::uint32_t> rule_least_, rest_;  ///< bytes at least: of a rule; from a symbol to its alternative's end
  std::vector<std::uint32_t> rank_;               ///< of a rule: less than those of all that it may begin with
  std::array<std::uint8_t, 256> class_of_{};      ///< bytes of one class are in the same sets
  std::vector<unsigned char> class_bytes_;        ///< one byte of each class
  byte_set literal_bytes_;
  rule rule_count_ = 0;
  std::uint32_t start_ = 0;  ///< an alternative: the start rule alone
};

}  // namespace intaglio::serve
