// SPDX-License-Identifier: MIT
// What the rules of a schema's values share: a rule for each conjunction of schemas that is met, filled one after the
// other, and why some value has no text.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar.hpp"
#include "json_document.hpp"
#include "json_rules.hpp"
#include "schema_words.hpp"
#include "text_language.hpp"

namespace intaglio::serve {

class schema_rules {
 public:
  using rule = grammar::rule;
  schema_rules(grammar& to, json_rules& rules, const json& root, const std::string& where)
      : g(to), parts(rules), words(root, where) {}

  /// The rule of the values that hold to these schemas; a new one waits for its alternatives.
  /// @throws std::length_error: there are too many
  rule rule_of(const conjunction& of);
  /// The rules that wait, first in, first out.
  bool some_wait() const { return !waiting_.empty(); }
  std::pair<rule, conjunction> take_next();

  /// Texts that hold to the patterns, the formats and the lengths. @throws api_error 400: they have too many states
  text_language language_of(const value_form& of);

  /// Notes that a form has no text.
  void nothing(const value_form& of, const std::string& why) {
    if (without_text_.empty()) without_text_ = of.at + ": " + why;
  }
  /// Why some value has no text, where one has none: the first one.
  const std::string& without_text() const { return without_text_; }

  grammar& g;
  json_rules& parts;
  schema_words words;

 private:
  std::map<std::vector<const json*>, rule> made_;
  std::deque<std::pair<rule, conjunction>> waiting_;
  std::string without_text_;
};

/// Adds the arrays, or the objects, of a form as alternatives of a rule.
/// @throws api_error 400 naming the word and its path; std::length_error: too many members
void add_arrays(schema_rules& all, grammar::rule to, const value_form& of);
void add_objects(schema_rules& all, grammar::rule to, const value_form& of);

}  // namespace intaglio::serve
