// SPDX-License-Identifier: MIT
#include "json_schema.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "api_error.hpp"
#include "json_rules.hpp"
#include "number_form.hpp"
#include "schema_rules.hpp"

namespace intaglio::serve {
namespace {

using rule = grammar::rule;

/// Fills the rule of each conjunction of schemas that is met.
class schema_grammar {
 public:
  schema_grammar(grammar& to, json_rules& rules, const json& root, const std::string& where)
      : g_(to), rules_(rules), numbers_(to), all_(to, rules, root, where), start_(all_.rule_of({{&root, where}})) {
    while (all_.some_wait()) {
      const auto [to_fill, of] = all_.take_next();
      fill(to_fill, of);
    }
  }
  rule start() const { return start_; }
  const std::string& without_text() const { return all_.without_text(); }

 private:
  void fill(rule to, const conjunction& of) {
    if (of.size() == 1)
      if (const auto alternatives = all_.words.plain_alternatives(of[0])) {
        for (const located_schema& each : *alternatives) g_.add(to, {all_.rule_of({each})});
        return;
      }
    for (const value_form& each : all_.words.forms(of)) add(to, each);
  }

  void add(rule to, const value_form& of) {
    if (of.values) return add_values(to, of);
    // A word that belongs to one type says that the value is of this type.
    const unsigned types = of.typed || of.spoken_of == 0 ? of.types : of.types & of.spoken_of;
    if (types == json_types::all && of.spoken_of == 0) return g_.add(to, {rules_.any});
    if (types == 0) all_.nothing(of, "no type is left");
    if (types & json_types::null) g_.add(to, {"null"});
    if (types & json_types::boolean) g_.add(to, {"true"}), g_.add(to, {"false"});
    if (types & json_types::number) add_number(to, of);
    if (types & json_types::string) add_string(to, of);
    if (types & json_types::array) add_arrays(all_, to, of);
    if (types & json_types::object) add_objects(all_, to, of);
  }

  void add_values(rule to, const value_form& of) {
    std::size_t kept = 0;
    for (const json* each : *of.values)
      if (all_.words.holds_beside(*each, of)) g_.add(to, {json_text(*each)}), ++kept;
    if (kept == 0) all_.nothing(of, "no value of the list holds to the schema");
  }

  void add_number(rule to, const value_form& of) {
    const number_bounds& bounds = of.numbers;
    if (bounds.any()) return g_.add(to, {rules_.number});
    const bool any_integer = !bounds.least && !bounds.most && bounds.step == 1 && bounds.step_decimals == 0;
    if (bounds.empty()) all_.nothing(of, "no number is in the range");
    g_.add(to, {any_integer ? rules_.integer : numbers_.of(bounds)});
  }

  void add_string(rule to, const value_form& of) {
    if (of.most_length && *of.most_length < of.least_length)
      return all_.nothing(of, "maxLength is less than minLength");
    if (of.texts.empty()) {
      const bool any = of.least_length == 0 && !of.most_length;
      return g_.add(
          to, {any ? rules_.string
                   : g_.add_rule({"\"", rules_.repeated(rules_.character, of.least_length, of.most_length), "\""})});
    }
    std::string key = std::to_string(of.least_length) + ' ' + (of.most_length ? std::to_string(*of.most_length) : "");
    for (const auto& [name, each] : of.texts) key += '\n' + name;
    const auto [known, fresh] = strings_.try_emplace(std::move(key), 0);
    if (fresh) {
      const text_language all = all_.language_of(of);
      if (all.empty()) all_.nothing(of, "no text holds to the pattern, the format and the lengths");
      known->second = g_.add_rule({"\"", all.written(g_, all_.words.budget()), "\""});
    }
    g_.add(to, {known->second});
  }

  grammar& g_;
  json_rules& rules_;
  number_writer numbers_;
  schema_rules all_;
  std::map<std::string, rule> strings_;
  rule start_;
};

}  // namespace

grammar any_json_object() {
  grammar out;
  json_rules rules(out);
  const rule start = out.add_rule({rules.space, rules.any_object});
  out.finish(start);
  return out;
}

grammar::rule add_schema(grammar& to, json_rules& rules, const json& schema, const std::string& where) {
  return schema_grammar(to, rules, schema, where).start();
}

grammar grammar_of_schema(const json& schema, const std::string& where) {
  grammar out;
  std::string why;
  try {
    json_rules rules(out);
    const schema_grammar read(out, rules, schema, where);
    if (!read.without_text().empty()) why = " (" + read.without_text() + ")";
    const rule blank = out.add_rule({});
    out.add(blank, {" "});
    out.finish(out.add_rule({blank, read.start()}));
  } catch (const std::length_error&) {
    schema_words::refuse(where, "the schema is too large");
  } catch (const std::invalid_argument& problem) { schema_words::refuse(where, problem.what() + why); }
  return out;
}

}  // namespace intaglio::serve
