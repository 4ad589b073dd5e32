// SPDX-License-Identifier: MIT
#include "schema_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>

namespace intaglio::serve {

grammar::rule schema_rules::rule_of(const conjunction& of) {
  if (of.empty()) return parts.any;
  std::vector<const json*> key;
  for (const located_schema& each : of) key.push_back(each.schema);
  std::sort(key.begin(), key.end());
  key.erase(std::unique(key.begin(), key.end()), key.end());
  const auto [known, fresh] = made_.try_emplace(std::move(key), 0);
  if (!fresh) return known->second;
  if (made_.size() > 50'000) throw std::length_error("schema");
  known->second = g.add_rule();
  waiting_.emplace_back(known->second, of);
  return known->second;
}

std::pair<grammar::rule, conjunction> schema_rules::take_next() {
  auto out = std::move(waiting_.front());
  waiting_.pop_front();
  return out;
}

text_language schema_rules::language_of(const value_form& of) {
  try {
    text_language out = text_language::all();
    for (const auto& [name, each] : of.texts) out = each->both(out, words.budget());
    if (of.least_length == 0 && !of.most_length) return out;
    // Each length is a state of its own: fewer where both together would have too many, if some text is left then.
    const auto states = static_cast<std::uint32_t>(std::max<std::size_t>(out.state_count(), 1));
    const std::uint32_t room =
        std::max(of.least_length + 1, static_cast<std::uint32_t>(text_language::most_states) / states);
    const auto most = of.most_length ? std::optional(std::min(*of.most_length, room)) : std::nullopt;
    return out.both(text_language::of_length(of.least_length, most), words.budget());
  } catch (const std::length_error&) {
    schema_words::refuse(of.at, "pattern, format and lengths are too much together");
  }
}

}  // namespace intaglio::serve
