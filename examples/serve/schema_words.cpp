// SPDX-License-Identifier: MIT
#include "schema_words.hpp"

#include <intaglio/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "api_error.hpp"
#include "uri.hpp"

namespace intaglio::serve {
namespace {

constexpr std::array<std::string_view, 14> describing{
    "title", "description", "default",  "examples",  "example", "$comment",    "$schema",
    "$id",   "deprecated",  "readOnly", "writeOnly", "$defs",   "definitions", "$anchor"};
bool describes(std::string_view word) {
  return std::find(describing.begin(), describing.end(), word) != describing.end();
}

/// Formats that zod writes beside a pattern, which says all of them.
bool is_said_by_pattern(std::string_view format) {
  constexpr std::array<std::string_view, 18> known{
      "starts_with", "ends_with", "includes", "lowercase", "uppercase", "regex", "cuid", "cuid2",  "ulid",
      "nanoid",      "xid",       "ksuid",    "hex",       "mac",       "emoji", "guid", "cidrv6", "md5"};
  return std::find(known.begin(), known.end(), format) != known.end();
}

constexpr std::size_t most_work = 20'000;
constexpr int most_depth = 200;

unsigned type_of(const json& value) {
  return value.is_null()      ? json_types::null
         : value.is_boolean() ? json_types::boolean
         : value.is_number()  ? json_types::number
         : value.is_string()  ? json_types::string
         : value.is_array()   ? json_types::array
                              : json_types::object;
}

std::uint32_t count_of(const json& inside, const std::string& at, bool upper) {
  if (!inside.is_number_unsigned()) schema_words::refuse(at, "expected a natural number");
  const auto out = inside.get<std::uint64_t>();
  if (!upper && out > most_repeats) schema_words::refuse(at, "expected 0 .. " + std::to_string(most_repeats));
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(out, most_repeats));
}
void raise(std::uint32_t& least, std::uint32_t to) { least = std::max(least, to); }
void lower(std::optional<std::uint32_t>& most, std::uint32_t to) { most = most ? std::min(*most, to) : to; }

std::size_t characters(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char each) { return (static_cast<unsigned char>(each) & 0xC0) != 0x80; }));
}

}  // namespace

void schema_words::refuse(const std::string& at, const std::string& why) {
  const std::string path = at.size() <= 200 ? at : at.substr(0, 100) + "..." + at.substr(at.size() - 97);
  throw api_error(400, printable(path, 210) + ": " + why, path.substr(0, path.find_first_of(".[")),
                  "unsupported_schema");
}

std::optional<std::vector<located_schema>> schema_words::plain_alternatives(const located_schema& of) {
  if (!of.schema->is_object()) return {};
  const std::string* only = nullptr;
  for (const auto& [word, inside] : of.schema->get_ref<const json::object_t&>()) {
    if (describes(word) || word == "discriminator") continue;
    if (only != nullptr) return {};
    only = &word;
  }
  if (only == nullptr) return {};
  const json& inside = (*of.schema)[*only];
  if (*only == "$ref") return std::vector{target(inside, of.at)};
  if (*only != "anyOf" && *only != "oneOf" && (*only != "allOf" || !inside.is_array() || inside.size() != 1)) return {};
  auto list = list_of(inside, of.at + "." + *only);
  if (*only == "oneOf") require_disjoint(list, of.at + ".oneOf");
  return list;
}

std::vector<located_schema> schema_words::list_of(const json& list, const std::string& at) const {
  if (!list.is_array() || list.empty()) refuse(at, "expected schemas");
  std::vector<located_schema> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.push_back({&list[i], at + "[" + std::to_string(i) + "]"});
  return out;
}

located_schema schema_words::target(const json& reference, const std::string& at) const {
  if (!reference.is_string()) refuse(at + ".$ref", "expected a text");
  const std::string path = reference.get<std::string>();
  if (path != "#" && !path.starts_with("#/")) refuse(at + ".$ref", "expected a schema in this document: '#/...'");
  // A pointer in a URI has %XX for some characters: "#/%24defs/a".
  const std::string pointer = decoded_path(path.substr(1)).value_or(path.substr(1));
  try {
    return {&root_.at(json::json_pointer(pointer)), where_ + pointer};
  } catch (const json::exception&) { refuse(at + ".$ref", "'" + printable(path, 60) + "' is not in the document"); }
}

std::vector<value_form> schema_words::forms(const conjunction& of) {
  std::vector<value_form> out;
  value_form form;
  form.at = of.empty() ? where_ : of.front().at;
  expand(of, {}, {}, std::move(form), out, 0);
  return out;
}

/// Applies pending keywords, then follows each alternative of the open choices.
void schema_words::expand(conjunction pending, choices open, std::set<const json*> seen, value_form form,
                          std::vector<value_form>& out, int depth) {
  if (depth > most_depth)
    refuse(form.at, "alternatives and references nest at most " + std::to_string(most_depth) + " deep");
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const located_schema next = pending[i];
    if (!seen.insert(next.schema).second) continue;  // twice says no more than once
    if (++work_ > most_work) refuse(form.at, "too many alternatives that are to hold together");
    conjunction more;
    if (!apply(next, form, more, open)) return;
    pending.insert(pending.begin() + static_cast<std::ptrdiff_t>(i) + 1, more.begin(), more.end());
  }
  if (open.empty()) {
    out.push_back(std::move(form));
    return;
  }
  const std::vector<located_schema> list = std::move(open.back());
  open.pop_back();
  for (const located_schema& each : list) {
    spend(
        10 + form.required.size() + form.objects.size() + form.arrays.size() + (form.values ? form.values->size() : 0),
        form.at);
    expand({each}, open, seen, form, out, depth + 1);
  }
}

/// Spends units of the budget of a schema beside its automata: some milliseconds.
void schema_words::spend(std::size_t units, const std::string& at) {
  constexpr std::size_t most = 500'000;
  spent_ += units;
  if (spent_ > most) refuse(at, "the schema asks for too much work");
}

/// @return false: no value holds
bool schema_words::apply(const located_schema& of, value_form& to, conjunction& pending, choices& open) {
  const json& schema = *of.schema;
  if (schema.is_boolean()) return schema.get<bool>();
  if (!schema.is_object()) refuse(of.at, "expected a schema, an object, true or false");
  for (const auto& [word, inside] : schema.get_ref<const json::object_t&>()) {
    const std::string at = of.at + "." + word;
    if (describes(word)) continue;
    if (word == "$ref") {
      pending.push_back(target(inside, of.at));
    } else if (word == "allOf") {
      for (auto& each : list_of(inside, at)) pending.push_back(std::move(each));
    } else if (word == "anyOf" || word == "oneOf") {
      open.push_back(list_of(inside, at));
      if (word == "oneOf") require_disjoint(open.back(), at);
    } else if (word == "discriminator" && (schema.contains("oneOf") || schema.contains("anyOf"))) {
      // which of them it is, once more
    } else if (!apply_word(word, inside, of, to)) {
      refuse(of.at, "'" + printable(word, 40) + "' is not among the words of JSON schema that are supported here");
    }
  }
  if (schema.contains("items") || schema.contains("prefixItems")) to.arrays.push_back(of);
  for (const char* const word : {"properties", "additionalProperties", "patternProperties"})
    if (schema.contains(word)) {
      to.objects.push_back(of);
      break;
    }
  return true;
}

bool schema_words::apply_word(const std::string& word, const json& inside, const located_schema& of, value_form& to) {
  const std::string at = of.at + "." + word;
  if (word == "type") return apply_type(inside, at, to), true;
  if (word == "const") return apply_values({&inside}, to), true;
  if (word == "enum") {
    if (!inside.is_array()) refuse(at, "expected an array");
    std::vector<const json*> list;
    for (const json& each : inside) list.push_back(&each);
    return apply_values(list, to), true;
  }
  if (apply_number(word, inside, at, to)) return to.spoken_of |= json_types::number, true;
  if (apply_string(word, inside, of, to)) return true;
  if (apply_array(word, inside, of, to)) return to.spoken_of |= json_types::array, true;
  if (apply_object(word, inside, of, to)) return to.spoken_of |= json_types::object, true;
  return false;
}

void schema_words::apply_type(const json& inside, const std::string& at, value_form& to) {
  unsigned types = 0;
  bool whole = false, any_number = false;
  const auto one = [&](const json& each) {
    if (!each.is_string()) refuse(at, "expected a name or a list of names");
    const auto& name = each.get_ref<const std::string&>();
    constexpr std::array<std::pair<std::string_view, unsigned>, 7> known{{{"null", json_types::null},
                                                                          {"boolean", json_types::boolean},
                                                                          {"number", json_types::number},
                                                                          {"integer", json_types::number},
                                                                          {"string", json_types::string},
                                                                          {"array", json_types::array},
                                                                          {"object", json_types::object}}};
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == known.end()) refuse(at, "'" + printable(name, 40) + "' is no type of JSON");
    types |= found->second;
    whole = whole || name == "integer";
    any_number = any_number || name == "number";
  };
  if (inside.is_array()) {
    if (inside.empty()) refuse(at, "expected a name or a list of names");
    for (const json& each : inside) one(each);
  } else {
    one(inside);
  }
  to.types &= types;
  to.typed = true;
  if (whole && !any_number) to.numbers.multiple_of(decimal::of_text("1"));
}

void schema_words::apply_values(const std::vector<const json*>& list, value_form& to) {
  if (!to.values) {
    to.values = list;
    return;
  }
  spend(to.values->size() * list.size(), to.at);
  std::erase_if(*to.values, [&](const json* each) {
    return std::none_of(list.begin(), list.end(), [&](const json* other) { return *each == *other; });
  });
}

bool schema_words::apply_number(const std::string& word, const json& inside, const std::string& at, value_form& to) {
  constexpr std::array<std::string_view, 5> known{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                                  "multipleOf"};
  if (std::find(known.begin(), known.end(), word) == known.end()) return false;
  if (!inside.is_number() || !std::isfinite(inside.get<double>())) refuse(at, "expected a number");
  const decimal value = decimal::of(inside);
  if (word == "minimum" || word == "exclusiveMinimum") to.numbers.at_least(value, word[0] == 'e');
  else if (word == "maximum" || word == "exclusiveMaximum") to.numbers.at_most(value, word[0] == 'e');
  else if (value.negative || !to.numbers.multiple_of(value))
    refuse(at, "expected a number over 0 of at most 9 digits, at most 15 digits after the point");
  return true;
}

bool schema_words::apply_string(const std::string& word, const json& inside, const located_schema& of, value_form& to) {
  const std::string at = of.at + "." + word;
  if (word == "format") return apply_format(inside, of, to), true;
  if (word == "minLength") raise(to.least_length, count_of(inside, at, false));
  else if (word == "maxLength") lower(to.most_length, count_of(inside, at, true));
  else if (word == "pattern")
    to.texts.emplace("/" + (inside.is_string() ? inside.get<std::string>() : ""), pattern(inside, at));
  else if (word == "contentEncoding" && (inside == "base64" || inside == "base64url")) apply_format(inside, of, to);
  else return false;
  to.spoken_of |= json_types::string;
  return true;
}

void schema_words::apply_format(const json& inside, const located_schema& of, value_form& to) {
  const std::string at = of.at + ".format";
  if (!inside.is_string()) refuse(at, "expected a text");
  const auto& name = inside.get_ref<const std::string&>();
  if (name == "int32" || name == "int64" || name == "float" || name == "double") {
    to.spoken_of |= json_types::number;
    if (name[0] == 'i') to.numbers.multiple_of(decimal::of_text("1"));
    if (name == "int32")
      to.numbers.at_least(decimal::of_text("-2147483648"), false),
          to.numbers.at_most(decimal::of_text("2147483647"), false);
    return;
  }
  to.spoken_of |= json_types::string;
  auto& known = languages_[name + (of.schema->contains("pattern") ? "+" : "")];
  if (!known) {
    std::optional<text_language> found;
    try {
      found = language_of_format(name, budget_);
    } catch (const std::length_error&) { refuse(at, "patterns and formats are too much together"); }
    if (!found && of.schema->contains("pattern") && is_said_by_pattern(name)) found = text_language::all();
    if (!found) refuse(at, "'" + printable(name, 40) + "' is not among the formats that are supported here");
    known = std::make_shared<const text_language>(std::move(*found));
  }
  to.texts.emplace(name, known);
}

std::shared_ptr<const text_language> schema_words::pattern(const json& text, const std::string& at) {
  if (!text.is_string()) refuse(at, "expected a text");
  const auto& of = text.get_ref<const std::string&>();
  auto& known = languages_["/" + of];
  if (known) return known;
  try {
    known = std::make_shared<const text_language>(text_language::of_pattern(of, budget_));
  } catch (const std::invalid_argument& problem) { refuse(at, problem.what()); } catch (const std::length_error&) {
    refuse(at, "the pattern is too large");
  }
  return known;
}

bool schema_words::apply_array(const std::string& word, const json& inside, const located_schema& of, value_form& to) {
  const std::string at = of.at + "." + word;
  if (word == "minItems") raise(to.least_items, count_of(inside, at, false));
  else if (word == "maxItems") lower(to.most_items, count_of(inside, at, true));
  else if (word == "uniqueItems") {
    if (!inside.is_boolean()) refuse(at, "expected true or false");
    to.unique = to.unique || inside.get<bool>();
  } else if (word == "prefixItems") {
    list_of(inside, at);
  } else if (word == "items") {
    if (inside.is_array()) refuse(at, "expected a schema; those of single items are in prefixItems");
  } else {
    return false;
  }
  return true;
}

bool schema_words::apply_object(const std::string& word, const json& inside, const located_schema& of, value_form& to) {
  const std::string at = of.at + "." + word;
  if (word == "properties" || word == "patternProperties") {
    if (!inside.is_object()) refuse(at, "expected an object");
    if (word[1] == 'a') patterns(of);
  } else if (word == "additionalProperties") {
    if (!inside.is_boolean() && !inside.is_object()) refuse(at, "expected a schema, an object, true or false");
  } else if (word == "propertyNames") {
    to.names.push_back({&inside, at});
  } else if (word == "required") {
    if (!inside.is_array()) refuse(at, "expected an array of names");
    for (const json& each : inside) {
      if (!each.is_string()) refuse(at, "expected names");
      to.required.push_back(each.get<std::string>());
    }
  } else if (word == "minProperties") {
    raise(to.least_members, count_of(inside, at, false));
  } else if (word == "maxProperties") {
    lower(to.most_members, count_of(inside, at, true));
  } else {
    return false;
  }
  return true;
}

std::vector<std::pair<std::shared_ptr<const text_language>, located_schema>> schema_words::patterns(
    const located_schema& of) {
  std::vector<std::pair<std::shared_ptr<const text_language>, located_schema>> out;
  const auto list = of.schema->find("patternProperties");
  if (list == of.schema->end()) return out;
  for (const auto& [text, inside] : list->items()) {
    const std::string at = of.at + ".patternProperties." + printable(text, 40);
    out.emplace_back(pattern(json(text), at), located_schema{&inside, at});
  }
  return out;
}

const json* schema_words::property(const json& list, const std::string& name) {
  const auto [index, fresh] = members_.try_emplace(&list);
  if (fresh)
    for (const auto& [key, inside] : list.get_ref<const json::object_t&>()) index->second.emplace(key, &inside);
  const auto found = index->second.find(name);
  return found == index->second.end() ? nullptr : found->second;
}

conjunction schema_words::member(const value_form& of, const std::string& name) {
  conjunction out;
  for (const located_schema& each : of.objects) {
    bool found = false;
    if (const auto list = each.schema->find("properties"); list != each.schema->end())
      if (const json* const at = property(*list, name))
        out.push_back({at, each.at + ".properties." + printable(name, 40)}), found = true;
    for (const auto& [language, index] : patterns(each))
      if (language->holds(name)) out.push_back(index), found = true;
    if (found) continue;
    if (const auto others = each.schema->find("additionalProperties"); others != each.schema->end())
      out.push_back({&*others, each.at + ".additionalProperties"});
  }
  if (!of.names.empty() && !holds(json(name), of.names)) {
    static const json no = false;
    out.push_back({&no, of.names.front().at});
  }
  return out;
}

item_forms schema_words::items(const value_form& of) const {
  item_forms out;
  std::size_t most = 0;
  for (const located_schema& each : of.arrays)
    if (const auto list = each.schema->find("prefixItems"); list != each.schema->end())
      most = std::max(most, list->size());
  out.first.resize(most);
  for (const located_schema& each : of.arrays) {
    const auto list = each.schema->find("prefixItems"), others = each.schema->find("items");
    const std::size_t own = list == each.schema->end() ? 0 : list->size();
    for (std::size_t i = 0; i < most; ++i) {
      if (i < own) out.first[i].push_back({&(*list)[i], each.at + ".prefixItems[" + std::to_string(i) + "]"});
      else if (others != each.schema->end()) out.first[i].push_back({&*others, each.at + ".items"});
    }
    if (others == each.schema->end()) continue;
    out.others.push_back({&*others, each.at + ".items"});
    out.others_spoken_of = true;
  }
  return out;
}

bool schema_words::holds(const json& value, const conjunction& of, int depth) {
  if (depth > most_depth) refuse(of.front().at, "schemas nest too deep for a value that is listed");
  for (const value_form& each : forms(of))
    if (holds(value, each, depth + 1)) return true;
  return false;
}

bool schema_words::holds(const json& value, const value_form& of, int depth) {
  if (of.values) {
    spend(of.values->size(), of.at);
    if (std::none_of(of.values->begin(), of.values->end(), [&](const json* each) { return *each == value; }))
      return false;
  }
  return holds_beside(value, of, depth);
}

bool schema_words::holds_beside(const json& value, const value_form& of, int depth) {
  if ((of.types & type_of(value)) == 0) return false;
  const auto within = [](std::size_t size, std::uint32_t least, const std::optional<std::uint32_t>& most) {
    return size >= least && (!most || size <= *most);
  };
  if (value.is_number()) return of.numbers.holds(decimal::of(value));
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return within(characters(text), of.least_length, of.most_length) &&
           std::all_of(of.texts.begin(), of.texts.end(), [&](const auto& each) { return each.second->holds(text); });
  }
  if (value.is_array()) {
    if (!within(value.size(), of.least_items, of.most_items)) return false;
    spend(value.size() * (of.unique ? value.size() : 1), of.at);
    const item_forms list = items(of);
    for (std::size_t i = 0; i < value.size(); ++i) {
      const conjunction& wanted = i < list.first.size() ? list.first[i] : list.others;
      if (!wanted.empty() && !holds(value[i], wanted, depth + 1)) return false;
      for (std::size_t k = 0; of.unique && k < i; ++k)
        if (value[i] == value[k]) return false;
    }
    return true;
  }
  if (!value.is_object()) return true;
  if (!within(value.size(), of.least_members, of.most_members)) return false;
  spend(value.size() * (1 + of.required.size()), of.at);
  for (const std::string& name : of.required)
    if (!value.contains(name)) return false;
  for (const auto& [name, inside] : value.items())
    if (const conjunction wanted = member(of, name); !wanted.empty() && !holds(inside, wanted, depth + 1)) return false;
  return true;
}

/// Exactly one schema of oneOf has to hold: accepted only where no value satisfies two of them.
void schema_words::require_disjoint(const std::vector<located_schema>& list, const std::string& at) {
  if (!proven_.insert(list.front().schema).second) return;
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (!surely_empty({list[k], list[i]}, 0))
        refuse(at, "alternatives " + std::to_string(k) + " and " + std::to_string(i) +
                       " may hold together: expected ones that exclude each other, or anyOf");
}

bool schema_words::surely_empty(const conjunction& of, int depth) {
  if (depth > 4) return false;
  const std::vector<value_form> list = forms(of);
  return std::all_of(list.begin(), list.end(), [&](const value_form& each) { return surely_empty(each, depth); });
}

bool schema_words::surely_empty(const value_form& of, int depth) {
  if (of.values)
    return std::none_of(of.values->begin(), of.values->end(),
                        [&](const json* each) { return holds_beside(*each, of); });
  if (of.types & (json_types::null | json_types::boolean)) return false;
  if ((of.types & json_types::number) != 0 && !of.numbers.empty()) return false;
  if ((of.types & json_types::string) != 0) {
    if (!of.most_length || of.least_length <= *of.most_length) {
      std::optional<text_language> all;
      for (const auto& [name, each] : of.texts) try {
          all = all ? all->both(*each, budget_) : *each;
        } catch (const std::length_error&) { return false; }
      if (!all || !all->empty()) return false;
    }
  }
  if ((of.types & json_types::array) != 0 && (!of.most_items || of.least_items <= *of.most_items)) {
    const item_forms list = items(of);
    bool empty = false;
    for (std::size_t i = 0; i < of.least_items && !empty; ++i) {
      const conjunction& wanted = i < list.first.size() ? list.first[i] : list.others;
      empty = !wanted.empty() && surely_empty(wanted, depth + 1);
    }
    if (!empty) return false;
  }
  if ((of.types & json_types::object) != 0 &&
      std::none_of(of.required.begin(), of.required.end(), [&](const std::string& name) {
        const conjunction wanted = member(of, name);
        return !wanted.empty() && surely_empty(wanted, depth + 1);
      }))
    return false;
  return true;
}

}  // namespace intaglio::serve
