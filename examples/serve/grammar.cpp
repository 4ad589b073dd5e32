// SPDX-License-Identifier: MIT
#include "grammar.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>

namespace intaglio::serve {

byte_set bytes_between(unsigned char first, unsigned char last) {
  byte_set out;
  for (unsigned byte = first; byte <= last; ++byte) out.set(byte);
  return out;
}

std::uint32_t grammar::set_of(const byte_set& bytes) {
  const auto [known, fresh] = set_indices_.try_emplace(bytes, static_cast<std::uint32_t>(sets_.size()));
  if (fresh) {
    if (sets_.size() >= most_sets) throw std::length_error("grammar");
    sets_.push_back(bytes);
  }
  return known->second;
}
std::uint32_t grammar::set_of(unsigned char byte) {
  std::uint32_t& known = single_sets_[byte];
  if (known == 0) known = set_of(byte_set().set(byte)) + 1;
  return known - 1;
}

void grammar::add(rule to, std::span<const part> parts) {
  added_.emplace_back(to, static_cast<std::uint32_t>(symbols_.size()));
  for (const part& each : parts) {
    if (const auto* literal = std::get_if<std::string>(&each)) {
      for (const char letter : *literal) {
        literal_bytes_.set(static_cast<unsigned char>(letter));
        symbols_.push_back({kind::bytes, set_of(static_cast<unsigned char>(letter))});
      }
    } else if (const auto* bytes = std::get_if<byte_set>(&each)) {
      symbols_.push_back({kind::bytes, set_of(*bytes)});
    } else {
      symbols_.push_back({kind::rule, std::get<rule>(each)});
    }
    if (symbols_.size() > most_symbols) throw std::length_error("grammar");
  }
  symbols_.push_back({kind::end, 0});
  if (symbols_.size() > most_symbols) throw std::length_error("grammar");
}

void grammar::finish(rule start) {
  start_ = static_cast<std::uint32_t>(symbols_.size());
  symbols_.push_back({kind::rule, start});
  symbols_.push_back({kind::end, 0});
  sort_alternatives();
  settle_lengths();
  if (rule_least_[start] >= never) throw std::invalid_argument("no text fits");
  drop_what_never_ends();
  rank_rules();
  classify_bytes();
  set_indices_.clear();
}

void grammar::sort_alternatives() {
  first_.assign(rule_count_ + 1, 0);
  for (const auto& [to, at] : added_) ++first_[to + 1];
  for (rule r = 0; r < rule_count_; ++r) first_[r + 1] += first_[r];
  alternatives_.resize(added_.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const auto& [to, at] : added_) alternatives_[next[to]++] = at;
  added_ = {};
}

/// Knuth's generalisation of Dijkstra's algorithm: rules are settled in the order of their lengths, each once.
void grammar::settle_lengths() {
  std::vector<std::uint32_t> whose(symbols_.size(), 0);  // the alternative that a symbol is in, by its beginning
  std::vector<rule> owner(symbols_.size(), rule_count_);
  for (rule r = 0; r < rule_count_; ++r)
    for (const std::uint32_t at : alternatives_of(r)) owner[at] = r;
  std::vector<std::uint32_t> calls_first(rule_count_ + 1, 0);
  for (const symbol& each : symbols_)
    if (each.is == kind::rule) ++calls_first[each.index + 1];
  for (rule r = 0; r < rule_count_; ++r) calls_first[r + 1] += calls_first[r];
  std::vector<std::uint32_t> callers(calls_first.back()), next(calls_first.begin(), calls_first.end() - 1);
  std::vector<std::uint32_t> open(symbols_.size(), 0),
      sum(symbols_.size(), 0);  // by beginning: calls not settled, bytes
  using candidate = std::pair<std::uint32_t, rule>;
  std::priority_queue<candidate, std::vector<candidate>, std::greater<>> queue;
  for (std::uint32_t i = 0, begin = 0; i < symbols_.size(); ++i) {
    whose[i] = begin;
    if (symbols_[i].is == kind::bytes) ++sum[begin];
    if (symbols_[i].is == kind::rule) ++open[begin], callers[next[symbols_[i].index]++] = i;
    if (symbols_[i].is != kind::end) continue;
    if (open[begin] == 0 && owner[begin] != rule_count_) queue.emplace(sum[begin], owner[begin]);
    begin = i + 1;
  }
  rule_least_.assign(rule_count_, never);
  while (!queue.empty()) {
    const auto [least, of] = queue.top();
    queue.pop();
    if (rule_least_[of] != never) continue;
    rule_least_[of] = least;
    for (std::uint32_t i = calls_first[of]; i < calls_first[of + 1]; ++i) {
      const std::uint32_t begin = whose[callers[i]];
      sum[begin] = std::min(never - 1, sum[begin] + least);
      if (--open[begin] == 0 && owner[begin] != rule_count_) queue.emplace(sum[begin], owner[begin]);
    }
  }
  rest_.assign(symbols_.size(), 0);
  for (std::size_t i = symbols_.size(); i-- != 0;) {
    const symbol& at = symbols_[i];
    rest_[i] =
        at.is == kind::end ? 0 : std::min(never, rest_[i + 1] + (at.is == kind::bytes ? 1 : rule_least_[at.index]));
  }
}

void grammar::drop_what_never_ends() {
  std::vector<std::uint32_t> kept;
  for (rule r = 0; r < rule_count_; ++r) {
    const std::span<const std::uint32_t> all = alternatives_of(r);
    const auto begin = static_cast<std::uint32_t>(kept.size());
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [&](std::uint32_t at) { return rest_[at] < never; });
    first_[r] = begin;  // symbols before it have been read
  }
  // first_[r + 1] was still the old end while rule r was read.
  first_[rule_count_] = static_cast<std::uint32_t>(kept.size());
  alternatives_ = std::move(kept);
}

/// Depth first over what a rule may call before it has read a byte, without recursion of ours.
void grammar::rank_rules() {
  enum : std::uint8_t { fresh, open, closed };
  std::vector<std::uint8_t> mark(rule_count_, fresh);
  const auto first_calls = [&](rule of) {
    std::vector<rule> out;
    for (std::uint32_t at : alternatives_of(of))
      for (; symbols_[at].is == kind::rule; ++at) {
        out.push_back(symbols_[at].index);
        if (rule_least_[symbols_[at].index] != 0) break;
      }
    return out;
  };
  rank_.assign(rule_count_, 0);
  std::uint32_t next_rank = rule_count_;
  for (rule begin = 0; begin < rule_count_; ++begin) {
    if (mark[begin] != fresh) continue;
    std::vector<std::pair<rule, std::vector<rule>>> path;
    mark[begin] = open;
    path.emplace_back(begin, first_calls(begin));
    while (!path.empty()) {
      auto& [at, calls] = path.back();
      if (calls.empty()) {
        mark[at] = closed;
        rank_[at] = --next_rank;  // all that it may begin with have theirs
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

void grammar::classify_bytes() {
  class_of_.fill(0);
  std::size_t classes = 1;
  for (const byte_set& each : sets_) {
    std::array<std::int16_t, 512> finer_of{};  // by class and whether it is in the set: the finer class plus 1
    std::int16_t finer = 0;
    std::array<std::uint8_t, 256> split{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::int16_t& of = finer_of[std::size_t{class_of_[byte]} * 2 + (each[byte] ? 1 : 0)];
      if (of == 0) of = ++finer;
      split[byte] = static_cast<std::uint8_t>(of - 1);
    }
    if (static_cast<std::size_t>(finer) == classes) continue;
    class_of_ = split;
    classes = static_cast<std::size_t>(finer);
    if (classes == 256) break;
  }
  class_bytes_.resize(classes);
  for (std::size_t byte = 0; byte < 256; ++byte) class_bytes_[class_of_[byte]] = static_cast<unsigned char>(byte);
}

}  // namespace intaglio::serve
