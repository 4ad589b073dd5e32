// SPDX-License-Identifier: MIT
// The automaton of a pattern: Thompson's, made deterministic by sets of its states. Its reader is pattern.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "text_language.hpp"

namespace intaglio::serve {

using character_range = std::pair<std::uint32_t, std::uint32_t>;
using character_ranges = std::vector<character_range>;  ///< characters, both ends among them

constexpr std::uint32_t last_character = 0x10FFFF;

/// Sorts and joins ranges: the result ascends, its ranges are apart, and it has no surrogates.
character_ranges tidy(character_ranges of);
/// All other characters.
character_ranges inverse(const character_ranges& of);

/// States of a pattern and the ways between them, which its reader adds; and the language of the texts that it matches.
class pattern_automaton {
 public:
  /// A state with at most two ways on, of one kind each.
  struct way {
    enum : std::uint8_t { free, set, begin, end, look, looked } kind = free;
    character_ranges characters;
    std::uint32_t to = 0, other = 0;  ///< other: a second way of kind free, 0: none; what a lookahead asks for
  };
  /// A part with one way in and one out.
  struct piece {
    std::uint32_t in, out;
  };

  explicit pattern_automaton(language_budget& budget) : budget_(budget) { ways_.emplace_back(); }

  /// @return the number of the new state  @throws std::length_error there are too many
  std::uint32_t add(way each);
  /// What matches the empty text.
  piece nothing();
  /// What matches one state.
  piece one(way each);
  /// Leads from one state to another for free.
  void join(std::uint32_t from, std::uint32_t to);

  /// The texts that a pattern matches. @param anchored the pattern begins where the text does
  /// @throws std::length_error there are too many states
  text_language language(piece whole, bool anchored);

 private:
  static constexpr std::size_t most_ways = 20'000;

  /// A reading: where the pattern is, and where the lookaheads are that have not been seen to match yet.
  using reading = std::pair<std::uint32_t, std::set<std::uint32_t>>;
  using readings = std::set<reading>;
  void close(readings& list, bool at_begin, bool at_end);
  std::optional<reading> after(const reading& of, std::uint32_t character, std::uint32_t done) const;

  language_budget& budget_;
  std::vector<way> ways_;
};

}  // namespace intaglio::serve
