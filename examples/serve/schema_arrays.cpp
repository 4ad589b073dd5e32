// SPDX-License-Identifier: MIT
// The arrays of a schema: items, prefixItems, minItems, maxItems, uniqueItems.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema_rules.hpp"

namespace intaglio::serve {
namespace {

using rule = grammar::rule;
using part = grammar::part;

class array_rules {
 public:
  explicit array_rules(schema_rules& all) : all_(all) {}

  void add(rule to, const value_form& of) {
    const item_forms items = all_.words.items(of);
    const auto most = of.most_items;
    const std::uint32_t least = of.least_items;
    if (most && *most < least) return all_.nothing(of, "maxItems is less than minItems");
    if (of.unique && (!most || *most > 1)) return add_unique(to, of, items);
    if (items.first.empty()) return all_.g.add(to, {all_.parts.array_of(all_.rule_of(items.others), least, most)});
    // All that are listed, as far as there may be as many; others where the schema speaks of them or wants more.
    const auto listed =
        static_cast<std::uint32_t>(std::min<std::size_t>(items.first.size(), most.value_or(most_repeats)));
    std::vector<part> parts{"[", all_.parts.space};
    for (std::uint32_t i = 0; i < listed; ++i) {
      if (i != 0) parts.insert(parts.end(), {",", all_.parts.space});
      parts.emplace_back(all_.rule_of(items.first[i]));
    }
    const std::uint32_t more = least > listed ? least - listed : 0;
    if (items.others_spoken_of || more != 0) {
      const rule next = all_.g.add_rule({listed == 0 ? "" : ",", all_.parts.space, all_.rule_of(items.others)});
      const auto room =
          items.others_spoken_of ? (most ? std::optional(*most - listed) : std::nullopt) : std::optional(more);
      parts.emplace_back(all_.parts.repeated(next, more, room));
    }
    parts.insert(parts.end(), {all_.parts.space, "]"});
    all_.g.add(to, parts);
  }

 private:
  /// Each value at most once, in the order of the list.
  void add_unique(rule to, const value_form& of, const item_forms& items) {
    if (!items.first.empty() || !items.others_spoken_of)
      schema_words::refuse(of.at, "uniqueItems is supported of items of one schema that lists its values");
    std::vector<json> values;
    for (const value_form& each : all_.words.forms(items.others)) {
      std::vector<json> more;
      if (each.values)
        for (const json* value : *each.values) more.push_back(*value);
      else if ((each.types & ~(json_types::null | json_types::boolean)) == 0) more = {nullptr, false, true};
      else schema_words::refuse(of.at, "uniqueItems is supported of items that are listed (enum, const, boolean)");
      if (values.size() + more.size() > 300)
        schema_words::refuse(of.at, "uniqueItems is supported of up to 300 values");
      for (json& value : more)
        if (all_.words.holds_beside(value, each) && std::find(values.begin(), values.end(), value) == values.end())
          values.push_back(std::move(value));
    }
    if (values.size() < of.least_items) return all_.nothing(of, "there are fewer values than minItems");
    const auto all = static_cast<std::uint32_t>(values.size());
    const std::uint32_t most = std::min(of.most_items.value_or(all), all);
    // From the end: what may follow after each number of items that were written.
    std::vector<rule> next(most + 1);
    for (std::uint32_t count = 0; count <= most; ++count) {
      next[count] = all_.g.add_rule();
      if (count >= of.least_items) all_.g.add(next[count], {});
    }
    for (std::size_t i = values.size(); i-- != 0;) {
      std::vector<rule> here(most + 1);
      for (std::uint32_t count = 0; count <= most; ++count) {
        here[count] = all_.g.add_rule({next[count]});
        if (count == most) continue;
        if (count == 0) all_.g.add(here[count], {json_text(values[i]), next[1]});
        else all_.g.add(here[count], {",", all_.parts.space, json_text(values[i]), next[count + 1]});
      }
      next = std::move(here);
    }
    all_.g.add(to, {"[", all_.parts.space, next[0], all_.parts.space, "]"});
    if (of.least_items == 0) all_.g.add(to, {"[", all_.parts.space, "]"});
  }

  schema_rules& all_;
};

}  // namespace

void add_arrays(schema_rules& all, grammar::rule to, const value_form& of) { array_rules(all).add(to, of); }

}  // namespace intaglio::serve
