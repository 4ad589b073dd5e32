// SPDX-License-Identifier: MIT
// The objects of a schema: properties, required, additionalProperties, patternProperties, propertyNames, minProperties,
// maxProperties.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "schema_rules.hpp"

namespace intaglio::serve {
namespace {

using rule = grammar::rule;

class object_rules {
 public:
  explicit object_rules(schema_rules& all) : all_(all) {}

  void add(rule to, const value_form& of) {
    if (of.most_members && *of.most_members < of.least_members)
      return all_.nothing(of, "maxProperties is less than minProperties");
    const std::vector<member_rule> named = members(of);
    if (named.empty() && of.objects.empty() && of.names.empty() && of.least_members == 0 && !of.most_members)
      return all_.g.add(to, {all_.parts.any_object});
    const std::optional<rule> other = other_member(of, named, named.empty());
    if (named.empty()) {
      if (!other && of.least_members != 0) return all_.nothing(of, "no member is allowed, and some are needed");
      return all_.g.add(to, {all_.parts.members_of(other.value_or(0), of.least_members, other ? of.most_members : 0)});
    }
    const auto needed = static_cast<std::uint32_t>(
        std::count_if(named.begin(), named.end(), [](const member_rule& each) { return each.needed; }));
    const auto all = static_cast<std::uint32_t>(named.size());
    const bool counted = of.least_members > needed || (of.most_members && (other || *of.most_members < all));
    all_.g.add(to, {"{", all_.parts.space, counted ? counted_members(of, named, other) : plain_members(named, other),
                    all_.parts.space, "}"});
  }

 private:
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
      const rule value = all_.rule_of(all_.words.member(of, name));
      out.push_back(
          {name, all_.g.add_rule({json_text(json(name)) + ":", all_.parts.space, value}), needed.count(name) != 0});
    };
    for (const located_schema& each : of.objects)
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
    for (const value_form& each : all_.words.forms(of.names)) {
      if (!each.values) return {};
      for (const json* value : *each.values)
        if (value->is_string() && all_.words.holds_beside(*value, each)) out.push_back(value->get<std::string>());
    }
    return out;
  }

  /// A member whose name is none of those; never where the schema says nothing of such.
  /// @param alone there are no members with names: then any may come
  std::optional<rule> other_member(const value_form& of, const std::vector<member_rule>& named, bool alone) {
    conjunction others;
    std::vector<std::pair<std::shared_ptr<const text_language>, located_schema>> patterns;
    bool open = true, spoken_of = alone;
    for (const located_schema& each : of.objects) {
      for (auto& found : all_.words.patterns(each)) patterns.push_back(std::move(found));
      const auto list = each.schema->find("additionalProperties");
      if (list == each.schema->end()) continue;
      if (list->is_object()) spoken_of = true;
      if (*list == false) open = false;
      others.push_back({&*list, each.at + ".additionalProperties"});
    }
    if (named.empty() && of.names.empty() && patterns.empty())
      return open ? std::optional(all_.g.add_rule({all_.parts.string, ":", all_.parts.space, all_.rule_of(others)}))
                  : std::nullopt;
    if (listed_names(of)) return {};
    text_language rest = text_language::all();
    if (!of.names.empty()) {
      const std::vector<value_form> forms = all_.words.forms(of.names);
      if (forms.size() != 1 || forms[0].values)
        schema_words::refuse(of.names[0].at, "supported are names of one pattern, or of a list");
      rest = all_.language_of(forms[0]);
    }
    const rule out = all_.g.add_rule();
    bool any = false;
    try {
      std::vector<std::string_view> names_of_others;
      for (const member_rule& each : named) names_of_others.push_back(each.name);
      rest = rest.without(text_language::of_texts(names_of_others, all_.words.budget()), all_.words.budget());
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        text_language names = rest.both(*patterns[i].first, all_.words.budget());
        for (std::size_t k = 0; k < patterns.size(); ++k)
          if (k != i) names = names.without(*patterns[k].first, all_.words.budget());
        conjunction wanted{patterns[i].second};
        for (const located_schema& each : of.objects)
          if (const auto list = each.schema->find("additionalProperties");
              list != each.schema->end() && all_.words.patterns(each).empty())
            wanted.push_back({&*list, each.at + ".additionalProperties"});
        if (!names.empty())
          all_.g.add(out,
                     {"\"", names.written(all_.g, all_.words.budget()), "\":", all_.parts.space, all_.rule_of(wanted)}),
              any = true;
      }
      for (const auto& [language, index] : patterns) rest = rest.without(*language, all_.words.budget());
    } catch (const std::length_error&) {
      schema_words::refuse(of.at, "names and their patterns are too much together");
    }
    if (open && spoken_of && (patterns.empty() || !alone) && !rest.empty())
      all_.g.add(out, {"\"", rest.written(all_.g, all_.words.budget()), "\":", all_.parts.space, all_.rule_of(others)}),
          any = true;
    return any ? std::optional(out) : std::nullopt;
  }

  /// What may follow when the members before one are written: after some a comma is due, after none it is not.
  rule plain_members(const std::vector<member_rule>& named, const std::optional<rule>& other) {
    rule after_some = all_.g.add_rule({}), after_none = all_.g.add_rule({});
    if (other) {
      const rule more = all_.parts.repeated(all_.g.add_rule({",", all_.parts.space, *other}), 0, {});
      all_.g.add(after_some, {",", all_.parts.space, *other, more});
      all_.g.add(after_none, {*other, more});
    }
    for (auto at = named.rbegin(); at != named.rend(); ++at) {
      const rule some = all_.g.add_rule({",", all_.parts.space, at->text, after_some}),
                 none = all_.g.add_rule({at->text, after_some});
      if (!at->needed) {
        all_.g.add(some, {after_some});
        all_.g.add(none, {after_none});
      }
      after_some = some;
      after_none = none;
    }
    return after_none;
  }

  /// A rule for the members of an object whose number of members is limited.
  rule counted_members(const value_form& of, const std::vector<member_rule>& named, const std::optional<rule>& other) {
    const std::uint32_t least = of.least_members, all = static_cast<std::uint32_t>(named.size()),
                        most = std::min(of.most_members.value_or(most_repeats), other ? most_repeats : all);
    // Beyond the counted members, each further one has the same rule.
    const std::uint32_t top = of.most_members ? most : least;
    std::vector<rule> next(top + 1);
    for (std::uint32_t count = 0; count <= top; ++count) next[count] = all_.g.add_rule();
    const auto after = [&](std::uint32_t count) { return std::min(count + 1, top); };
    const auto allowed = [&](std::uint32_t count) { return !of.most_members || count < most; };
    for (std::uint32_t count = 0; count <= top; ++count) {
      if (count >= least) all_.g.add(next[count], {});
      if (other && allowed(count))
        all_.g.add(next[count], {count == 0 ? "" : ",", all_.parts.space, *other, next[after(count)]});
    }
    for (auto at = named.rbegin(); at != named.rend(); ++at) {
      std::vector<rule> here(top + 1);
      for (std::uint32_t count = 0; count <= top; ++count) {
        here[count] = all_.g.add_rule();
        if (allowed(count))
          all_.g.add(here[count], {count == 0 ? "" : ",", all_.parts.space, at->text, next[after(count)]});
        if (!at->needed) all_.g.add(here[count], {next[count]});
      }
      next = std::move(here);
    }
    return next[0];
  }

  schema_rules& all_;
};

}  // namespace

void add_objects(schema_rules& all, grammar::rule to, const value_form& of) { object_rules(all).add(to, of); }

}  // namespace intaglio::serve
