// SPDX-License-Identifier: MIT
#include "pattern_automaton.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace intaglio::serve {

character_ranges tidy(character_ranges of) {
  std::sort(of.begin(), of.end());
  character_ranges out;
  for (const auto& [first, last] : of)
    for (const auto& [from, until] : {character_range{0, 0xD7FF}, character_range{0xE000, last_character}}) {
      const std::uint32_t low = std::max(first, from), high = std::min(last, until);
      if (low > high) continue;
      if (!out.empty() && low <= out.back().second + 1) out.back().second = std::max(out.back().second, high);
      else out.emplace_back(low, high);
    }
  return out;
}

character_ranges inverse(const character_ranges& of) {
  character_ranges out;
  std::uint32_t next = 0;
  for (const auto& [first, last] : tidy(of)) {
    if (next < first) out.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= last_character) out.emplace_back(next, last_character);
  return tidy(out);
}

std::uint32_t pattern_automaton::add(way each) {
  if (ways_.size() >= most_ways) throw std::length_error("pattern");
  budget_.spend(10);
  ways_.push_back(std::move(each));
  return static_cast<std::uint32_t>(ways_.size() - 1);
}

pattern_automaton::piece pattern_automaton::nothing() {
  const std::uint32_t at = add({});
  return {at, at};
}

void pattern_automaton::join(std::uint32_t from, std::uint32_t to) {
  way& at = ways_[from];
  if (at.to == 0) at.to = to;
  else if (at.other == 0) at.other = to;
  else throw std::logic_error("pattern: three ways");
}

pattern_automaton::piece pattern_automaton::one(way each) {
  const std::uint32_t out = add({});
  each.to = out;
  return {add(std::move(each)), out};
}

/// What follows for free. @param at_begin, at_end of the text
void pattern_automaton::close(readings& list, bool at_begin, bool at_end) {
  std::vector<reading> open(list.begin(), list.end());
  readings out;
  readings met = list;
  const auto more = [&](reading each) {
    budget_.spend(20 + 10 * each.second.size());
    if (met.insert(each).second) open.push_back(std::move(each));
  };
  while (!open.empty()) {
    const reading at = std::move(open.back());
    open.pop_back();
    const auto passes = [&](const way& each) {
      return each.kind == way::free || (each.kind == way::begin && at_begin) || (each.kind == way::end && at_end);
    };
    const way& main = ways_[at.first];
    if (main.kind == way::look) {
      reading next{main.to, at.second};
      next.second.insert(main.other);
      more(std::move(next));
      continue;
    }
    if (passes(main)) {
      for (const std::uint32_t to : {main.to, main.other})
        if (to != 0) more({to, at.second});
      if (main.to != 0) continue;
    }
    const auto moves = std::find_if(at.second.begin(), at.second.end(), [&](std::uint32_t each) {
      return ways_[each].kind == way::looked || (passes(ways_[each]) && ways_[each].to != 0);
    });
    if (moves == at.second.end()) {
      out.insert(at);
      continue;
    }
    reading rest = at;
    rest.second.erase(*moves);
    if (ways_[*moves].kind == way::looked) {
      more(std::move(rest));
      continue;
    }
    for (const std::uint32_t to : {ways_[*moves].to, ways_[*moves].other}) {
      if (to == 0) continue;
      reading next = rest;
      next.second.insert(to);
      more(std::move(next));
    }
  }
  list = std::move(out);
}

/// Behind a character; nothing where it does not fit.
std::optional<pattern_automaton::reading> pattern_automaton::after(const reading& of, std::uint32_t character,
                                                                   std::uint32_t done) const {
  const auto step = [&](std::uint32_t at) -> std::uint32_t {
    if (at == done) return done;
    const way& each = ways_[at];
    if (each.kind != way::set) return 0;
    const bool within = std::any_of(each.characters.begin(), each.characters.end(), [&](const character_range& r) {
      return r.first <= character && character <= r.second;
    });
    return within ? each.to : 0;
  };
  reading out{step(of.first), {}};
  if (out.first == 0) return {};
  for (const std::uint32_t each : of.second) {
    const std::uint32_t next = step(each);
    if (next == 0) return {};
    out.second.insert(next);
  }
  return out;
}

text_language pattern_automaton::language(piece whole, bool anchored) {
  const std::uint32_t done = add({});  // the pattern has matched: anything may follow
  join(whole.out, done);
  std::set<std::uint32_t> edges{0};
  for (const way& each : ways_)
    for (const auto& [first, last] : each.characters) edges.insert(first), edges.insert(last + 1);
  edges.insert(0xD800), edges.insert(0xE000), edges.erase(last_character + 1);
  text_language out;
  out.cuts_.assign(edges.begin(), edges.end());
  const reading matched{done, {}};
  std::map<readings, std::uint32_t> indices;
  std::vector<readings> list;
  const auto index_of = [&](readings each) {
    if (each.empty()) return text_language::none;
    if (each.count(matched) != 0) each = {matched};
    const auto [at, fresh] = indices.try_emplace(each, static_cast<std::uint32_t>(list.size()));
    if (fresh) list.push_back(std::move(each));
    if (list.size() > text_language::most_states) throw std::length_error("pattern");
    return at->second;
  };
  readings first{{whole.in, {}}};
  close(first, true, false);
  // The state in front of all is its own: ^ holds there alone.
  list.push_back(first.count(matched) != 0 ? readings{matched} : first);
  for (std::size_t i = 0; i < list.size(); ++i) {
    readings at_end = list[i];
    close(at_end, i == 0, true);
    out.accepts_.push_back(at_end.count(matched) != 0);
    text_language::row row(out.cuts_.size(), text_language::none);
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::uint32_t character = out.cuts_[k];
      if (character >= 0xD800 && character < 0xE000) continue;
      readings next;
      budget_.spend(3 * list[i].size() + 5);
      for (const reading& each : list[i])
        if (auto found = after(each, character, done)) next.insert(std::move(*found));
      if (!anchored && next.count(matched) == 0) next.insert({whole.in, {}});  // or it begins after this character
      close(next, false, false);
      row[k] = index_of(std::move(next));
    }
    out.next_.push_back(std::move(row));
  }
  out.trim();
  return out;
}

}  // namespace intaglio::serve
