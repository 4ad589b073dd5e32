// SPDX-License-Identifier: MIT
#include "grammar.hpp"

#include <algorithm>
#include <stdexcept>

namespace intaglio::serve {

byte_set bytes_between(unsigned char first, unsigned char last) {
  byte_set out;
  for (unsigned byte = first; byte <= last; ++byte) out.set(byte);
  return out;
}

std::uint32_t grammar::set_of(const byte_set& bytes) {
  const auto [place, fresh] = set_places_.try_emplace(bytes.to_string(), static_cast<std::uint32_t>(sets_.size()));
  if (fresh) sets_.push_back(bytes);
  return place->second;
}

void grammar::add(rule to, std::span<const part> parts) {
  rules_[to].push_back(static_cast<std::uint32_t>(symbols_.size()));
  for (const part& each : parts) {
    if (const auto* literal = std::get_if<std::string>(&each)) {
      for (const char letter : *literal) {
        byte_set one;
        one.set(static_cast<unsigned char>(letter));
        literal_bytes_ |= one;
        symbols_.push_back({kind::bytes, set_of(one)});
      }
    } else if (const auto* bytes = std::get_if<byte_set>(&each)) {
      symbols_.push_back({kind::bytes, set_of(*bytes)});
    } else {
      symbols_.push_back({kind::rule, std::get<rule>(each)});
    }
    if (symbols_.size() > most_symbols) throw std::length_error("grammar");
  }
  symbols_.push_back({kind::end, 0});
}

void grammar::finish(rule start) {
  start_ = start;
  rule_least_.assign(rules_.size(), never);
  rest_.assign(symbols_.size(), 0);
  // Lengths only fall, and each round settles a rule at least.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = symbols_.size(); i-- != 0;) {
      const symbol& at = symbols_[i];
      rest_[i] =
          at.is == kind::end ? 0 : std::min(never, rest_[i + 1] + (at.is == kind::bytes ? 1 : rule_least_[at.index]));
    }
    for (std::size_t r = 0; r < rules_.size(); ++r)
      for (const std::uint32_t alternative : rules_[r])
        if (rest_[alternative] < rule_least_[r]) rule_least_[r] = rest_[alternative], changed = true;
  }
  if (rule_least_[start] >= never) throw std::invalid_argument("no text fits");
  refuse_left_recursion();
}

void grammar::refuse_left_recursion() const {
  enum : char { fresh, open, closed };
  std::vector<char> mark(rules_.size(), fresh);
  // What a rule may call before it has read a byte; depth first, without recursion of ours.
  const auto first_calls = [&](rule of) {
    std::vector<rule> out;
    for (std::uint32_t at : rules_[of])
      for (; symbols_[at].is == kind::rule; ++at) {
        out.push_back(symbols_[at].index);
        if (rule_least_[symbols_[at].index] != 0) break;
      }
    return out;
  };
  for (rule begin = 0; begin < rules_.size(); ++begin) {
    if (mark[begin] != fresh) continue;
    std::vector<std::pair<rule, std::vector<rule>>> path;
    mark[begin] = open;
    path.emplace_back(begin, first_calls(begin));
    while (!path.empty()) {
      auto& [at, calls] = path.back();
      if (calls.empty()) {
        mark[at] = closed;
        path.pop_back();
        continue;
      }
      const rule next = calls.back();
      calls.pop_back();
      if (mark[next] == open) throw std::invalid_argument("a part that begins with itself");
      if (mark[next] == closed) continue;
      mark[next] = open;
      path.emplace_back(next, first_calls(next));
    }
  }
}

token_bytes::token_bytes(const std::vector<std::string_view>& texts) {
  for (std::size_t id = 0; id < texts.size(); ++id)
    if (!texts[id].empty()) entries_.push_back({texts[id], static_cast<std::int32_t>(id), 0});
  std::sort(entries_.begin(), entries_.end(),
            [](const entry& a, const entry& b) { return a.text != b.text ? a.text < b.text : a.id < b.id; });
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].text.size() == 1) single_.set(static_cast<unsigned char>(entries_[i].text[0]));
    if (i == 0) continue;
    const auto &a = entries_[i - 1].text, &b = entries_[i].text;
    entries_[i].shared = static_cast<std::uint32_t>(
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin())
            .first -
        a.begin());
  }
}

text_match::text_match(std::shared_ptr<const grammar> of) : of_(std::move(of)) {
  std::vector<stack> first;
  for (const std::uint32_t alternative : of_->rules_[of_->start_]) {
    stack below;
    expand(below, alternative, first);
  }
  intern(std::move(first));
}

void text_match::expand(stack& below, std::uint32_t at, std::vector<stack>& out) const {
  const grammar::symbol& symbol = of_->symbols_[at];
  switch (symbol.is) {
    case grammar::kind::bytes:
      out.push_back(below);
      out.back().push_back(at);
      return;
    case grammar::kind::end: {
      if (below.empty()) {
        out.emplace_back();
        return;
      }
      stack shorter(below.begin(), below.end() - 1);
      return expand(shorter, below.back(), out);
    }
    case grammar::kind::rule:
      // What stands last in its alternative need not be come back to.
      const bool last = of_->symbols_[at + 1].is == grammar::kind::end;
      if (!last) below.push_back(at + 1);
      for (const std::uint32_t alternative : of_->rules_[symbol.index]) expand(below, alternative, out);
      if (!last) below.pop_back();
      return;
  }
}

std::int32_t text_match::intern(std::vector<stack> stacks) {
  std::sort(stacks.begin(), stacks.end());
  stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
  if (stacks.empty()) return dead;
  const auto [place, fresh] = places_.try_emplace(stacks, static_cast<std::int32_t>(states_.size()));
  if (!fresh) return place->second;
  state& made = states_.emplace_back();
  made.least = grammar::never;
  for (const stack& each : stacks) {
    std::uint32_t bytes = 0;
    for (const std::uint32_t symbol : each) bytes = std::min(grammar::never, bytes + of_->rest_[symbol]);
    made.least = std::min(made.least, bytes);
    made.deepest = std::max(made.deepest, static_cast<std::uint32_t>(each.size()));
    made.complete = made.complete || each.empty();
  }
  made.stacks = std::move(stacks);
  made.next = std::make_unique<std::int32_t[]>(256);
  std::fill_n(made.next.get(), 256, unknown);
  return place->second;
}

std::int32_t text_match::step(std::int32_t from, unsigned char byte) {
  const auto index = static_cast<std::size_t>(from);
  if (const std::int32_t known = states_[index].next[byte]; known != unknown) return known;
  std::vector<stack> after;
  for (const stack& each : states_[index].stacks) {
    if (each.empty() || !of_->sets_[of_->symbols_[each.back()].index][byte]) continue;
    stack below(each.begin(), each.end() - 1);
    expand(below, each.back() + 1, after);
  }
  std::int32_t to = intern(std::move(after));
  // What is nested too deep may only become shorter, which some byte always does.
  if (to != dead && states_[static_cast<std::size_t>(to)].deepest > deep &&
      states_[static_cast<std::size_t>(to)].least >= states_[index].least)
    to = dead;
  return states_[index].next[byte] = to;
}

std::int32_t text_match::walk(std::int32_t from, std::string_view bytes) {
  for (const char byte : bytes) {
    if (from == dead) break;
    from = step(from, static_cast<unsigned char>(byte));
  }
  return from;
}

bool text_match::allows(std::string_view bytes, std::uint32_t bytes_left) {
  const std::int32_t to = bytes.empty() ? dead : walk(static_cast<std::int32_t>(at_), bytes);
  return to != dead && states_[static_cast<std::size_t>(to)].least <= bytes_left;
}

void text_match::take(std::string_view bytes) {
  const std::int32_t to = walk(static_cast<std::int32_t>(at_), bytes);
  if (to == dead) throw std::logic_error("a text outside of its grammar");
  at_ = static_cast<std::size_t>(to);
  if (states_.size() > most_states) {  // begin anew from here
    std::vector<stack> here = states_[at_].stacks;
    states_.clear();
    places_.clear();
    at_ = static_cast<std::size_t>(intern(std::move(here)));
  }
}

void text_match::mark_allowed(const token_bytes& tokens, std::uint32_t bytes_left, std::vector<bool>& allowed) {
  std::vector<std::int32_t> path{
      static_cast<std::int32_t>(at_)};  // the state behind each byte of the entry before; dead ends it
  for (const auto& each : tokens.entries()) {
    if (path.size() > each.shared + std::size_t{1}) path.resize(each.shared + std::size_t{1});
    while (path.back() != dead && path.size() <= each.text.size())
      path.push_back(step(path.back(), static_cast<unsigned char>(each.text[path.size() - 1])));
    if (path.back() == dead) continue;
    allowed[static_cast<std::size_t>(each.id)] = states_[static_cast<std::size_t>(path.back())].least <= bytes_left;
  }
}

}  // namespace intaglio::serve
