// SPDX-License-Identifier: MIT
#include "json_schema.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <unordered_set>

#include "api_error.hpp"
#include "json_rules.hpp"
#include "number_form.hpp"
#include "schema_words.hpp"

namespace intaglio::serve {
namespace {

using rule = grammar::rule;
using part = grammar::part;

/// A rule for each conjunction of schemas that is met, filled one after the other.
class schema_grammar {
 public:
  schema_grammar(grammar& to, json_rules& rules, const json& root, const std::string& where)
      : g_(to), rules_(rules), numbers_(to), words_(root, where), start_(rule_of({{&root, where}})) {
    while (!waiting_.empty()) {
      const auto [to_fill, of] = std::move(waiting_.front());
      waiting_.pop_front();
      fill(to_fill, of);
    }
  }
  rule start() const { return start_; }
  /// Why some value has no text, where one has none: the first one.
  const std::string& without_text() const { return without_text_; }

 private:
  rule rule_of(const conjunction& of) {
    if (of.empty()) return rules_.any;
    std::vector<const json*> key;
    for (const schema_place& each : of) key.push_back(each.schema);
    std::sort(key.begin(), key.end());
    key.erase(std::unique(key.begin(), key.end()), key.end());
    const auto [known, fresh] = made_.try_emplace(std::move(key), 0);
    if (!fresh) return known->second;
    if (made_.size() > 50'000) throw std::length_error("schema");
    known->second = g_.add_rule();
    waiting_.emplace_back(known->second, of);
    return known->second;
  }

  void fill(rule to, const conjunction& of) {
    if (of.size() == 1)
      if (const auto alternatives = words_.plain_alternatives(of[0])) {
        for (const schema_place& each : *alternatives) g_.add(to, {rule_of({each})});
        return;
      }
    for (const value_form& each : words_.forms(of)) add(to, each);
  }

  void nothing(const value_form& of, const std::string& why) {
    if (without_text_.empty()) without_text_ = of.at + ": " + why;
  }

  void add(rule to, const value_form& of) {
    if (of.values) return add_values(to, of);
    // A word that belongs to one type says that the value is of this type.
    const unsigned types = of.typed || of.spoken_of == 0 ? of.types : of.types & of.spoken_of;
    if (types == json_types::all && of.spoken_of == 0) return g_.add(to, {rules_.any});
    if (types == 0) nothing(of, "no type is left");
    if (types & json_types::null) g_.add(to, {"null"});
    if (types & json_types::boolean) g_.add(to, {"true"}), g_.add(to, {"false"});
    if (types & json_types::number) add_number(to, of);
    if (types & json_types::string) add_string(to, of);
    if (types & json_types::array) add_array(to, of);
    if (types & json_types::object) add_object(to, of);
  }

  void add_values(rule to, const value_form& of) {
    std::size_t kept = 0;
    for (const json* each : *of.values)
      if (words_.holds_beside(*each, of)) g_.add(to, {json_text(*each)}), ++kept;
    if (kept == 0) nothing(of, "no value of the list holds to the schema");
  }

  void add_number(rule to, const value_form& of) {
    const number_bounds& bounds = of.numbers;
    if (bounds.any()) return g_.add(to, {rules_.number});
    const bool any_integer = !bounds.least && !bounds.most && bounds.step == 1 && bounds.step_places == 0;
    if (bounds.empty()) nothing(of, "no number is in the range");
    g_.add(to, {any_integer ? rules_.integer : numbers_.of(bounds)});
  }

  void add_string(rule to, const value_form& of) {
    if (of.most_length && *of.most_length < of.least_length) return nothing(of, "maxLength is less than minLength");
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
      const text_language all = language_of(of);
      if (all.empty()) nothing(of, "no text holds to the pattern, the format and the lengths");
      known->second = g_.add_rule({"\"", all.written(g_, words_.budget()), "\""});
    }
    g_.add(to, {known->second});
  }
  text_language language_of(const value_form& of) {
    try {
      text_language out = text_language::all();
      for (const auto& [name, each] : of.texts) out = each->both(out, words_.budget());
      if (of.least_length == 0 && !of.most_length) return out;
      // Each length is a state of its own: fewer where both together would have too many, if some text is left then.
      const auto states = static_cast<std::uint32_t>(std::max<std::size_t>(out.state_count(), 1));
      const std::uint32_t room =
          std::max(of.least_length + 1, static_cast<std::uint32_t>(text_language::most_states) / states);
      const auto most = of.most_length ? std::optional(std::min(*of.most_length, room)) : std::nullopt;
      return out.both(text_language::of_length(of.least_length, most), words_.budget());
    } catch (const std::length_error&) {
      schema_words::refuse(of.at, "pattern, format and lengths are too much together");
    }
  }

  void add_array(rule to, const value_form& of) {
    const item_forms items = words_.items(of);
    const auto most = of.most_items;
    const std::uint32_t least = of.least_items;
    if (most && *most < least) return nothing(of, "maxItems is less than minItems");
    if (of.unique && (!most || *most > 1)) return add_unique(to, of, items);
    if (items.first.empty()) return g_.add(to, {rules_.array_of(rule_of(items.others), least, most)});
    // All that are listed, as far as there may be as many; others where the schema speaks of them or wants more.
    const auto listed =
        static_cast<std::uint32_t>(std::min<std::size_t>(items.first.size(), most.value_or(most_repeats)));
    std::vector<part> parts{"[", rules_.space};
    for (std::uint32_t i = 0; i < listed; ++i) {
      if (i != 0) parts.insert(parts.end(), {",", rules_.space});
      parts.emplace_back(rule_of(items.first[i]));
    }
    const std::uint32_t more = least > listed ? least - listed : 0;
    if (items.others_spoken_of || more != 0) {
      const rule next = g_.add_rule({listed == 0 ? "" : ",", rules_.space, rule_of(items.others)});
      const auto room =
          items.others_spoken_of ? (most ? std::optional(*most - listed) : std::nullopt) : std::optional(more);
      parts.emplace_back(rules_.repeated(next, more, room));
    }
    parts.insert(parts.end(), {rules_.space, "]"});
    g_.add(to, parts);
  }

  /// Each value at most once, in the order of the list.
  void add_unique(rule to, const value_form& of, const item_forms& items) {
    if (!items.first.empty() || !items.others_spoken_of)
      schema_words::refuse(of.at, "uniqueItems is supported of items of one schema that lists its values");
    std::vector<json> values;
    for (const value_form& each : words_.forms(items.others)) {
      std::vector<json> more;
      if (each.values)
        for (const json* value : *each.values) more.push_back(*value);
      else if ((each.types & ~(json_types::null | json_types::boolean)) == 0) more = {nullptr, false, true};
      else schema_words::refuse(of.at, "uniqueItems is supported of items that are listed (enum, const, boolean)");
      if (values.size() + more.size() > 300)
        schema_words::refuse(of.at, "uniqueItems is supported of up to 300 values");
      for (json& value : more)
        if (words_.holds_beside(value, each) && std::find(values.begin(), values.end(), value) == values.end())
          values.push_back(std::move(value));
    }
    if (values.size() < of.least_items) return nothing(of, "there are fewer values than minItems");
    const auto all = static_cast<std::uint32_t>(values.size());
    const std::uint32_t most = std::min(of.most_items.value_or(all), all);
    // From the end: what may follow behind each number of items that were written.
    std::vector<rule> next(most + 1);
    for (std::uint32_t count = 0; count <= most; ++count) {
      next[count] = g_.add_rule();
      if (count >= of.least_items) g_.add(next[count], {});
    }
    for (std::size_t i = values.size(); i-- != 0;) {
      std::vector<rule> here(most + 1);
      for (std::uint32_t count = 0; count <= most; ++count) {
        here[count] = g_.add_rule({next[count]});
        if (count == most) continue;
        if (count == 0) g_.add(here[count], {json_text(values[i]), next[1]});
        else g_.add(here[count], {",", rules_.space, json_text(values[i]), next[count + 1]});
      }
      next = std::move(here);
    }
    g_.add(to, {"[", rules_.space, next[0], rules_.space, "]"});
    if (of.least_items == 0) g_.add(to, {"[", rules_.space, "]"});
  }

  struct member_rule {
    std::string name;
    rule text;
    bool needed;
  };
  /// Members that the schema names, in its order.
  std::vector<member_rule> members(const value_form& of) {
    const std::unordered_set<std::string> needed(of.required.begin(), of.required.end());
    std::unordered_set<std::string> met;
    std::vector<member_rule> out;
    const auto add = [&](const std::string& name) {
      if (!met.insert(name).second) return;
      if (met.size() > 5000) throw std::length_error("schema");
      const rule value = rule_of(words_.member(of, name));
      out.push_back({name, g_.add_rule({json_text(json(name)) + ":", rules_.space, value}), needed.count(name) != 0});
    };
    for (const schema_place& each : of.objects)
      if (const auto list = each.schema->find("properties"); list != each.schema->end())
        for (const auto& [name, inside] : list->items()) add(name);
    if (const auto names = listed_names(of))
      for (const std::string& name : *names) add(name);
    for (const std::string& name : of.required) add(name);
    return out;
  }
  /// Names of members where propertyNames lists them; nothing where it does not.
  std::optional<std::vector<std::string>> listed_names(const value_form& of) {
    if (of.names.empty()) return {};
    std::vector<std::string> out;
    for (const value_form& each : words_.forms(of.names)) {
      if (!each.values) return {};
      for (const json* value : *each.values)
        if (value->is_string() && words_.holds_beside(*value, each)) out.push_back(value->get<std::string>());
    }
    return out;
  }

  /// A member whose name is none of those; never where the schema says nothing of such.
  /// @param alone there are no members with names: then any may come
  std::optional<rule> other_member(const value_form& of, const std::vector<member_rule>& named, bool alone) {
    conjunction others;
    std::vector<std::pair<std::shared_ptr<const text_language>, schema_place>> patterns;
    bool open = true, spoken_of = alone;
    for (const schema_place& each : of.objects) {
      for (auto& found : words_.patterns(each)) patterns.push_back(std::move(found));
      const auto list = each.schema->find("additionalProperties");
      if (list == each.schema->end()) continue;
      if (list->is_object()) spoken_of = true;
      if (*list == false) open = false;
      others.push_back({&*list, each.at + ".additionalProperties"});
    }
    if (named.empty() && of.names.empty() && patterns.empty())
      return open ? std::optional(g_.add_rule({rules_.string, ":", rules_.space, rule_of(others)})) : std::nullopt;
    if (listed_names(of)) return {};
    text_language rest = text_language::all();
    if (!of.names.empty()) {
      const std::vector<value_form> forms = words_.forms(of.names);
      if (forms.size() != 1 || forms[0].values)
        schema_words::refuse(of.names[0].at, "supported are names of one pattern, or of a list");
      rest = language_of(forms[0]);
    }
    const rule out = g_.add_rule();
    bool any = false;
    try {
      std::vector<std::string_view> names_of_others;
      for (const member_rule& each : named) names_of_others.push_back(each.name);
      rest = rest.without(text_language::of_texts(names_of_others, words_.budget()), words_.budget());
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        text_language names = rest.both(*patterns[i].first, words_.budget());
        for (std::size_t k = 0; k < patterns.size(); ++k)
          if (k != i) names = names.without(*patterns[k].first, words_.budget());
        conjunction wanted{patterns[i].second};
        for (const schema_place& each : of.objects)
          if (const auto list = each.schema->find("additionalProperties");
              list != each.schema->end() && words_.patterns(each).empty())
            wanted.push_back({&*list, each.at + ".additionalProperties"});
        if (!names.empty())
          g_.add(out, {"\"", names.written(g_, words_.budget()), "\":", rules_.space, rule_of(wanted)}), any = true;
      }
      for (const auto& [language, place] : patterns) rest = rest.without(*language, words_.budget());
    } catch (const std::length_error&) {
      schema_words::refuse(of.at, "names and their patterns are too much together");
    }
    if (open && spoken_of && (patterns.empty() || !alone) && !rest.empty())
      g_.add(out, {"\"", rest.written(g_, words_.budget()), "\":", rules_.space, rule_of(others)}), any = true;
    return any ? std::optional(out) : std::nullopt;
  }

  void add_object(rule to, const value_form& of) {
    if (of.most_members && *of.most_members < of.least_members)
      return nothing(of, "maxProperties is less than minProperties");
    const std::vector<member_rule> named = members(of);
    if (named.empty() && of.objects.empty() && of.names.empty() && of.least_members == 0 && !of.most_members)
      return g_.add(to, {rules_.any_object});
    const std::optional<rule> other = other_member(of, named, named.empty());
    if (named.empty()) {
      if (!other && of.least_members != 0) return nothing(of, "no member is allowed, and some are needed");
      return g_.add(to, {rules_.members_of(other.value_or(0), of.least_members, other ? of.most_members : 0)});
    }
    const auto needed = static_cast<std::uint32_t>(
        std::count_if(named.begin(), named.end(), [](const member_rule& each) { return each.needed; }));
    const auto all = static_cast<std::uint32_t>(named.size());
    const bool counted = of.least_members > needed || (of.most_members && (other || *of.most_members < all));
    g_.add(to, {"{", rules_.space, counted ? counted_members(of, named, other) : plain_members(named, other),
                rules_.space, "}"});
  }

  /// What may follow when the members before one are written: behind some a comma is due, behind none it is not.
  rule plain_members(const std::vector<member_rule>& named, const std::optional<rule>& other) {
    rule behind_some = g_.add_rule({}), behind_none = g_.add_rule({});
    if (other) {
      const rule more = rules_.repeated(g_.add_rule({",", rules_.space, *other}), 0, {});
      g_.add(behind_some, {",", rules_.space, *other, more});
      g_.add(behind_none, {*other, more});
    }
    for (auto at = named.rbegin(); at != named.rend(); ++at) {
      const rule some = g_.add_rule({",", rules_.space, at->text, behind_some}),
                 none = g_.add_rule({at->text, behind_some});
      if (!at->needed) {
        g_.add(some, {behind_some});
        g_.add(none, {behind_none});
      }
      behind_some = some;
      behind_none = none;
    }
    return behind_none;
  }

  /// The same where it matters how many there are.
  rule counted_members(const value_form& of, const std::vector<member_rule>& named, const std::optional<rule>& other) {
    const std::uint32_t least = of.least_members, all = static_cast<std::uint32_t>(named.size()),
                        most = std::min(of.most_members.value_or(most_repeats), other ? most_repeats : all);
    // Beyond the counted members, each further one has the same rule.
    const std::uint32_t top = of.most_members ? most : least;
    std::vector<rule> next(top + 1);
    for (std::uint32_t count = 0; count <= top; ++count) next[count] = g_.add_rule();
    const auto after = [&](std::uint32_t count) { return std::min(count + 1, top); };
    const auto allowed = [&](std::uint32_t count) { return !of.most_members || count < most; };
    for (std::uint32_t count = 0; count <= top; ++count) {
      if (count >= least) g_.add(next[count], {});
      if (other && allowed(count))
        g_.add(next[count], {count == 0 ? "" : ",", rules_.space, *other, next[after(count)]});
    }
    for (auto at = named.rbegin(); at != named.rend(); ++at) {
      std::vector<rule> here(top + 1);
      for (std::uint32_t count = 0; count <= top; ++count) {
        here[count] = g_.add_rule();
        if (allowed(count)) g_.add(here[count], {count == 0 ? "" : ",", rules_.space, at->text, next[after(count)]});
        if (!at->needed) g_.add(here[count], {next[count]});
      }
      next = std::move(here);
    }
    return next[0];
  }

  grammar& g_;
  json_rules& rules_;
  number_writer numbers_;
  schema_words words_;
  std::map<std::vector<const json*>, rule> made_;
  std::map<std::string, rule> strings_;
  std::deque<std::pair<rule, conjunction>> waiting_;
  std::string without_text_;
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
