// SPDX-License-Identifier: MIT
// What JSON schemas say together: schemas that must all hold become a list of forms, one of which a value has to have.
// A word that is not known here is refused with its path; none is passed over.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_document.hpp"
#include "number_form.hpp"
#include "text_language.hpp"

namespace intaglio::serve {

/// A schema, and where it is in the request.
struct located_schema {
  const json* schema;
  std::string at;
};
/// Schemas that must all hold.
using conjunction = std::vector<located_schema>;

namespace json_types {
enum : unsigned { null = 1, boolean = 2, number = 4, string = 8, array = 16, object = 32, all = 63 };
}

/// One of the forms that values may have; words of one type say nothing of the others.
struct value_form {
  std::string at;
  unsigned types = json_types::all, spoken_of = 0;  ///< spoken_of: types that words without `type` are about
  bool typed = false;
  std::optional<std::vector<const json*>> values;  ///< nothing but these
  number_bounds numbers;
  std::uint32_t least_length = 0, least_items = 0, least_members = 0;
  std::optional<std::uint32_t> most_length, most_items, most_members;
  std::map<std::string, std::shared_ptr<const text_language>> texts;  ///< by what they were written as
  bool unique = false;
  std::vector<located_schema> arrays, objects;  ///< schemas with words of items and of members
  conjunction names;                            ///< of members
  std::vector<std::string> required;
};

/// Items of an array by index.
struct item_forms {
  std::vector<conjunction> first;
  conjunction others;
  bool others_spoken_of = false;
};

/// An upper bound beyond this many repeats is lowered to it, a lower one refused.
inline constexpr std::uint32_t most_repeats = 2000;

class schema_words {
 public:
  schema_words(const json& root, std::string where) : root_(root), where_(std::move(where)) {}

  /// @throws api_error 400: a word that is not known, or a value that it may not have, with its path
  std::vector<value_form> forms(const conjunction& of);
  /// The alternatives of a schema that is only a list of alternatives or a reference to another schema; else nothing.
  std::optional<std::vector<located_schema>> plain_alternatives(const located_schema& of);

  /// Members: a name's schemas, and whether one forbids it.
  conjunction member(const value_form& of, const std::string& name);
  item_forms items(const value_form& of) const;
  /// Patterns of names with their schemas: patternProperties.
  std::vector<std::pair<std::shared_ptr<const text_language>, located_schema>> patterns(const located_schema& of);
  bool holds(const json& value, const value_form& of, int depth = 0);
  /// Whether a value fits a form, whatever its `values` are.
  bool holds_beside(const json& value, const value_form& of, int depth = 0);
  bool holds(const json& value, const conjunction& of, int depth = 0);

  language_budget& budget() { return budget_; }

  [[noreturn]] static void refuse(const std::string& at, const std::string& why);

 private:
  using choices = std::vector<std::vector<located_schema>>;  ///< of each list one has to hold
  void expand(conjunction pending, choices open, std::set<const json*> seen, value_form form,
              std::vector<value_form>& out, int depth);
  bool apply(const located_schema& of, value_form& to, conjunction& pending, choices& open);
  bool apply_word(const std::string& word, const json& inside, const located_schema& of, value_form& to);
  bool apply_number(const std::string& word, const json& inside, const std::string& at, value_form& to);
  bool apply_string(const std::string& word, const json& inside, const located_schema& of, value_form& to);
  bool apply_array(const std::string& word, const json& inside, const located_schema& of, value_form& to);
  bool apply_object(const std::string& word, const json& inside, const located_schema& of, value_form& to);
  void apply_type(const json& inside, const std::string& at, value_form& to);
  void apply_values(const std::vector<const json*>& list, value_form& to);
  void apply_format(const json& inside, const located_schema& of, value_form& to);
  std::vector<located_schema> list_of(const json& list, const std::string& at) const;
  void require_disjoint(const std::vector<located_schema>& list, const std::string& at);
  bool surely_empty(const conjunction& of, int depth);
  bool surely_empty(const value_form& of, int depth);
  void spend(std::size_t units, const std::string& at);
  const json* property(const json& list, const std::string& name);
  located_schema target(const json& reference, const std::string& at) const;
  std::shared_ptr<const text_language> pattern(const json& text, const std::string& at);

  const json& root_;
  std::string where_;
  std::map<std::string, std::shared_ptr<const text_language>> languages_;
  std::set<const json*> proven_;  ///< lists of oneOf whose members exclude each other
  std::map<const json*, std::unordered_map<std::string_view, const json*>> members_;  ///< of properties, by name
  language_budget budget_;
  std::size_t work_ = 0, spent_ = 0;
};

}  // namespace intaglio::serve
