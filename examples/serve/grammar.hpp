// SPDX-License-Identifier: MIT
// Grammars over bytes and what may come next of them. A text is followed by all its readings at once; the sets of
// readings become states of an automaton as they are met, so a byte seen before in a state costs one look-up.
#pragma once

#include <bitset>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace intaglio::serve {

using byte_set = std::bitset<256>;
/// The bytes of [first, last].
byte_set bytes_between(unsigned char first, unsigned char last);

/// Rules with alternatives of literals, sets of bytes and other rules. Rules may call themselves, but not before a byte
/// is read.
class grammar {
 public:
  using rule = std::uint32_t;
  using part = std::variant<std::string, byte_set, rule>;
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max() / 4;
  static constexpr std::size_t most_symbols = 200'000;

  rule add_rule() { return rules_.emplace_back(), static_cast<rule>(rules_.size() - 1); }
  /// A rule of one alternative.
  rule add_rule(std::initializer_list<part> only) {
    const rule out = add_rule();
    add(out, only);
    return out;
  }
  /// One more way to read `to`. @throws std::length_error: over 200,000 symbols
  void add(rule to, std::span<const part> parts);
  void add(rule to, std::initializer_list<part> parts) { add(to, std::span(parts.begin(), parts.size())); }

  /// To be called once, when all rules are there.
  /// @throws std::invalid_argument: no text fits, or a rule calls itself before a byte is read
  void finish(rule start);

  /// Bytes of the shortest text.
  std::uint32_t least_bytes() const { return rule_least_[start_]; }
  /// Bytes that stand in literals: the vocabulary needs a token for each.
  const byte_set& literal_bytes() const { return literal_bytes_; }

 private:
  friend class text_match;
  enum class kind : std::uint8_t { end, bytes, rule };
  struct symbol {
    kind is;
    std::uint32_t index;  ///< of the set or rule
  };
  std::uint32_t set_of(const byte_set& bytes);
  void refuse_left_recursion() const;

  std::vector<symbol> symbols_;                    ///< alternatives one after the other, each up to its end
  std::vector<std::vector<std::uint32_t>> rules_;  ///< where their alternatives begin
  std::vector<byte_set> sets_;
  std::map<std::string, std::uint32_t> set_places_;
  std::vector<std::uint32_t> rule_least_, rest_;  ///< bytes at least: of a rule; from a symbol to its alternative's end
  byte_set literal_bytes_;
  rule start_ = 0;
};

/// The texts of a vocabulary in an order in which common beginnings are looked at once.
class token_bytes {
 public:
  struct entry {
    std::string_view text;
    std::int32_t id;
    std::uint32_t shared;  ///< bytes in common with the entry before
  };
  /// @param texts of the tokens that may stand in a text, by id; empty: not one of them. Must outlive this
  explicit token_bytes(const std::vector<std::string_view>& texts);
  std::span<const entry> entries() const { return entries_; }
  /// Bytes that are tokens of their own: with them any text can be written.
  const byte_set& single() const { return single_; }

 private:
  std::vector<entry> entries_;
  byte_set single_;
};

/// A text that is being written in a grammar. Copying is cheap enough for a try. Used by one thread.
class text_match {
 public:
  explicit text_match(std::shared_ptr<const grammar> of);

  /// The text may end here.
  bool complete() const { return states_[at_].complete; }
  /// Nothing may follow.
  bool finished() const { return complete() && states_[at_].stacks.size() == 1; }
  /// Bytes that are needed at least until it may end.
  std::uint32_t least_bytes() const { return states_[at_].least; }

  /// Whether the bytes fit and leave a text that `bytes_left` more bytes can end.
  bool allows(std::string_view bytes, std::uint32_t bytes_left);
  /// @pre allows(bytes)
  void take(std::string_view bytes);
  /// Marks the tokens that allows() would take.
  void mark_allowed(const token_bytes& tokens, std::uint32_t bytes_left, std::vector<bool>& allowed);

 private:
  using stack = std::vector<std::uint32_t>;  ///< symbols to go on with; the last one is a set of bytes and next. Empty:
                                             ///< the text has ended
  struct state {
    std::vector<stack> stacks;  ///< ascending
    bool complete = false;
    std::uint32_t least = 0, deepest = 0;
    std::unique_ptr<std::int32_t[]> next;  ///< by byte: state, dead, or not yet known
  };
  static constexpr std::int32_t dead = -1, unknown = -2;
  static constexpr std::size_t most_states = 8192, deep = 400;

  std::int32_t step(std::int32_t from, unsigned char byte);
  std::int32_t walk(std::int32_t from, std::string_view bytes);
  std::int32_t intern(std::vector<stack> stacks);
  void expand(stack& below, std::uint32_t symbol, std::vector<stack>& out) const;

  std::shared_ptr<const grammar> of_;
  std::vector<state> states_;
  std::map<std::vector<stack>, std::int32_t> places_;
  std::size_t at_ = 0;
};

}  // namespace intaglio::serve
