// SPDX-License-Identifier: MIT
// Regular languages of Unicode texts: of patterns in the part of ECMAScript's syntax that is regular, of formats, of
// lengths; intersected, subtracted, asked, and written into a grammar as contents of JSON strings.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "grammar.hpp"

namespace intaglio::serve {

/// What may be spent on automata, so that no pattern takes long: some 10 ns a unit.
struct language_budget {
  std::uint64_t left = 3'000'000;
  /// @throws std::length_error: more than is left
  void spend(std::uint64_t units) {
    if (units > left) throw std::length_error("automata");
    left -= units;
  }
};

/// How characters are written: as they are, or as JSON has them between quotes.
enum class character_form : std::uint8_t { plain, json };

/// A deterministic automaton. States from which no text ends are left out.
class text_language {
 public:
  static constexpr std::size_t most_states = 3000;

  /// Every text. Surrogates are no characters.
  static text_language all();
  /// Texts of `least` to `most` characters.
  static text_language of_length(std::uint32_t least, std::optional<std::uint32_t> most);
  /// These texts and no others.
  static text_language of_texts(const std::vector<std::string_view>& utf8, language_budget& budget);
  /// Texts in which the pattern matches somewhere, as RegExp.test does with the flag u. Lookaheads are supported only
  /// at the beginning.
  /// @throws std::invalid_argument naming an unsupported part; std::length_error: too many states
  static text_language of_pattern(std::string_view pattern, language_budget& budget);

  /// @throws std::length_error: too many states
  text_language both(const text_language& other, language_budget& budget) const {
    return combined(other, false, budget);
  }
  text_language without(const text_language& other, language_budget& budget) const {
    return combined(other, true, budget);
  }

  bool empty() const { return accepts_.empty(); }
  bool holds(std::string_view utf8) const;
  std::size_t state_count() const { return accepts_.size(); }

  /// A rule for the texts; of JSON for the characters between the quotes, escaped where it asks for that.
  grammar::rule written(grammar& to, language_budget& budget, character_form form = character_form::json) const;

 private:
  friend class pattern_automaton;
  static constexpr std::uint32_t none = 0xFFFF'FFFFu, end_of_characters = 0x110000;
  using row = std::vector<std::uint32_t>;  ///< by interval: state or none

  text_language combined(const text_language& other, bool negated, language_budget& budget) const;
  std::size_t interval_of(std::uint32_t character) const;
  void trim();

  std::vector<std::uint32_t> cuts_{0};  ///< where the intervals of characters begin, ascending, the first at 0
  std::vector<row> next_;               ///< state 0 is where texts begin
  std::vector<bool> accepts_;
};

/// The language of a `format` of JSON schema, or of another common format; nothing where it is unknown.
std::optional<text_language> language_of_format(std::string_view format, language_budget& budget);

}  // namespace intaglio::serve
