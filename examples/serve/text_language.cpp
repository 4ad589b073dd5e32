// SPDX-License-Identifier: MIT
#include "text_language.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "character_rules.hpp"

namespace intaglio::serve {
namespace {

/// @pre valid UTF-8
std::vector<std::uint32_t> characters_of(std::string_view utf8) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto first = static_cast<unsigned char>(utf8[i++]);
    const int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    std::uint32_t value = more == 0 ? first : first & (0x3Fu >> more);
    for (int k = 0; k < more && i < utf8.size(); ++k)
      value = value << 6 | (static_cast<unsigned char>(utf8[i++]) & 0x3Fu);
    out.push_back(value);
  }
  return out;
}

}  // namespace

text_language text_language::all() {
  text_language out;
  out.cuts_ = {0, 0xD800, 0xE000};
  out.next_ = {{0, none, 0}};
  out.accepts_ = {true};
  return out;
}

text_language text_language::of_length(std::uint32_t least, std::optional<std::uint32_t> most) {
  text_language out = all();
  out.next_.clear();
  out.accepts_.clear();
  const std::uint32_t last = most.value_or(least);
  if (last >= most_states) throw std::length_error("length");
  for (std::uint32_t i = 0; i <= last; ++i) {
    const std::uint32_t to = i < last ? i + 1 : most ? none : i;
    out.next_.push_back({to, none, to});
    out.accepts_.push_back(i >= least);
  }
  out.trim();
  return out;
}

text_language text_language::of_texts(const std::vector<std::string_view>& utf8, language_budget& budget) {
  text_language out;
  std::vector<std::vector<std::uint32_t>> list;
  std::set<std::uint32_t> cuts{0};
  for (const std::string_view each : utf8) {
    list.push_back(characters_of(each));
    for (const std::uint32_t character : list.back()) cuts.insert(character), cuts.insert(character + 1);
  }
  out.cuts_.assign(cuts.begin(), cuts.end());
  const auto add_state = [&] {
    budget.spend(out.cuts_.size());
    if (out.next_.size() >= most_states) throw std::length_error("texts");
    out.next_.emplace_back(out.cuts_.size(), none);
    out.accepts_.push_back(false);
    return static_cast<std::uint32_t>(out.next_.size() - 1);
  };
  add_state();
  for (const auto& each : list) {
    std::uint32_t at = 0;
    for (const std::uint32_t character : each) {
      const std::size_t interval = out.interval_of(character);
      if (out.next_[at][interval] == none) {
        const std::uint32_t made = add_state();
        out.next_[at][interval] = made;
      }
      at = out.next_[at][interval];
    }
    out.accepts_[at] = true;
  }
  return out;
}

std::size_t text_language::interval_of(std::uint32_t character) const {
  return static_cast<std::size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), character) - cuts_.begin()) - 1;
}

bool text_language::holds(std::string_view utf8) const {
  if (empty()) return false;
  std::uint32_t at = 0;
  for (const std::uint32_t each : characters_of(utf8))
    if ((at = next_[at][interval_of(each)]) == none) return false;
  return accepts_[at];
}

text_language text_language::combined(const text_language& other, bool negated, language_budget& budget) const {
  text_language out;
  std::set_union(cuts_.begin(), cuts_.end(), other.cuts_.begin(), other.cuts_.end(), std::back_inserter(out.cuts_));
  out.cuts_.erase(out.cuts_.begin());  // 0 was there already
  if (out.cuts_.empty() || out.cuts_[0] != 0) out.cuts_.insert(out.cuts_.begin(), 0);
  std::vector<std::pair<std::size_t, std::size_t>> intervals;
  for (const std::uint32_t cut : out.cuts_) intervals.emplace_back(interval_of(cut), other.interval_of(cut));
  using pair = std::pair<std::uint32_t, std::uint32_t>;
  std::map<pair, std::uint32_t> indices;
  std::vector<pair> list;
  const auto index_of = [&](pair each) {
    const auto [at, fresh] = indices.try_emplace(each, static_cast<std::uint32_t>(list.size()));
    if (fresh) list.push_back(each);
    if (list.size() > most_states) throw std::length_error("states");
    return at->second;
  };
  if (empty()) return out;
  index_of({0, other.empty() ? none : 0});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto [a, b] = list[i];
    budget.spend(5 * intervals.size() + 20);
    const bool second = b != none && other.accepts_[b];
    out.accepts_.push_back(accepts_[a] && second != negated);
    row to(intervals.size(), none);
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      const std::uint32_t x = next_[a][intervals[k].first], y = b == none ? none : other.next_[b][intervals[k].second];
      if (x != none && (y != none || negated)) to[k] = index_of({x, y});
    }
    out.next_.push_back(std::move(to));
  }
  out.trim();
  return out;
}

/// Leaves out states from which no text ends.
void text_language::trim() {
  std::vector<std::vector<std::uint32_t>> before(next_.size());
  for (std::uint32_t i = 0; i < next_.size(); ++i)
    for (const std::uint32_t to : next_[i])
      if (to != none && (before[to].empty() || before[to].back() != i)) before[to].push_back(i);
  std::vector<bool> lives = accepts_;
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < lives.size(); ++i)
    if (lives[i]) open.push_back(i);
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const std::uint32_t each : before[at])
      if (!lives[each]) lives[each] = true, open.push_back(each);
  }
  std::vector<std::uint32_t> now(next_.size(), none);
  std::uint32_t count = 0;
  if (!lives.empty() && lives[0])
    for (std::uint32_t i = 0; i < next_.size(); ++i)
      if (lives[i]) now[i] = count++;
  std::vector<row> kept;
  std::vector<bool> accepts;
  for (std::uint32_t i = 0; i < next_.size(); ++i) {
    if (now[i] == none) continue;
    kept.push_back(std::move(next_[i]));
    for (std::uint32_t& to : kept.back()) to = to == none ? none : now[to];
    accepts.push_back(accepts_[i]);
  }
  next_ = std::move(kept);
  accepts_ = std::move(accepts);
}

grammar::rule text_language::written(grammar& to, language_budget& budget, character_form form) const {
  std::vector<grammar::rule> rules;
  for (std::size_t i = 0; i < std::max<std::size_t>(accepts_.size(), 1); ++i) rules.push_back(to.add_rule());
  character_writer writer(to, form);
  for (std::size_t i = 0; i < accepts_.size(); ++i) {
    budget.spend(3 * cuts_.size() + 20);
    if (accepts_[i]) to.add(rules[i], {});
    std::map<std::uint32_t, character_writer::ranges> by_state;
    for (std::size_t k = 0; k < cuts_.size();) {
      const std::uint32_t next = next_[i][k], first = cuts_[k];
      while (k < cuts_.size() && next_[i][k] == next) ++k;
      if (next != none) by_state[next].emplace_back(first, (k < cuts_.size() ? cuts_[k] : end_of_characters) - 1);
    }
    for (const auto& [next, set] : by_state) to.add(rules[i], {writer.rule_of(set), rules[next]});
  }
  return rules[0];
}

}  // namespace intaglio::serve
