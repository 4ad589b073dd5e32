// SPDX-License-Identifier: MIT
#include "text_match.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace intaglio::serve {

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

std::size_t text_match::hash::operator()(index at) const {
  std::uint64_t out = of->nodes_[at].ends ? 1 : 0;
  for (const entry& each : of->nodes_[at].entries)
    out = (out ^ (std::uint64_t{each.symbol} << 32 | each.below)) * 0x9E37'79B9'7F4A'7C15u, out ^= out >> 29;
  return out;
}

text_match::text_match(std::shared_ptr<const grammar> of) : of_(std::move(of)), known_(64, hash{this}, same{this}) {
  clear();
  stacks first;
  add_from(of_->start_, end, first);
  at_ = expanded(merged(std::move(first)));
}

void text_match::clear() {
  known_.clear();
  unions_.clear();
  nodes_.clear();
  bytes_ = 0;
  intern({}, false);  // dead
  intern({}, true);   // end
}

void text_match::count(std::uint64_t steps) {
  work_ += steps;
  if (work_ > most_work_) throw match_limit("the form has too many readings of this text");
}

text_match::index text_match::intern(std::vector<entry> entries, bool ends) {
  count(1 + entries.size());
  const auto made = static_cast<index>(nodes_.size());
  nodes_.emplace_back();
  nodes_.back().entries = std::move(entries);
  nodes_.back().ends = ends;
  const auto [at, fresh] = known_.insert(made);
  if (!fresh) {
    const index known = *at;
    nodes_.pop_back();
    return known;
  }
  node& of = nodes_.back();
  bytes_ += sizeof(node) + 48 + of.entries.capacity() * sizeof(entry);
  of.least = ends ? 0 : grammar::never;
  for (const entry& each : of.entries) {
    of.least = std::min(of.least, of_->rest_[each.symbol] + nodes_[each.below].least);
    of.depth = std::max(of.depth, 1 + nodes_[each.below].depth);
  }
  if (bytes_ > most_bytes || of.depth > deepest) {
    known_.erase(at);
    bytes_ -= sizeof(node) + 48 + of.entries.capacity() * sizeof(entry);
    const bool nested = of.depth > deepest;
    nodes_.pop_back();
    throw match_limit(nested ? "the form is nested too deep" : "the form has too many readings of this text");
  }
  return made;
}

/// One node of all these stacks. What is below equal symbols becomes one.
text_match::index text_match::merged(stacks of) {
  auto& all = of.entries;
  std::sort(all.begin(), all.end(), [](const entry& a, const entry& b) {
    return a.symbol != b.symbol ? a.symbol < b.symbol : a.below < b.below;
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  count(all.size());
  std::size_t kept = 0;
  std::vector<index> below;
  for (std::size_t i = 0; i < all.size();) {
    const std::uint32_t symbol = all[i].symbol;
    below.clear();
    for (; i < all.size() && all[i].symbol == symbol; ++i) below.push_back(all[i].below);
    all[kept++] = {symbol, united(below)};
  }
  all.resize(kept);
  return all.empty() && !of.ends ? dead : intern(std::move(all), of.ends);
}

text_match::index text_match::united(std::span<const index> list) {
  if (list.size() == 1) return list[0];
  std::uint64_t key = 0;
  if (list.size() == 2) {
    key = std::uint64_t{std::min(list[0], list[1])} << 32 | std::max(list[0], list[1]);
    if (const auto known = unions_.find(key); known != unions_.end()) return known->second;
  }
  stacks all;
  for (const index each : list) add(each, all);
  const index made = merged(std::move(all));
  if (list.size() == 2 && unions_.emplace(key, made).second) bytes_ += 48;
  return made;
}

void text_match::add(index of, stacks& to) const {
  to.entries.insert(to.entries.end(), nodes_[of].entries.begin(), nodes_[of].entries.end());
  to.ends = to.ends || nodes_[of].ends;
}

/// Adds stacks whose top is a symbol from `at` on and whose rules are not expanded yet: that symbol, and the symbols
/// after it as long as those in front can be empty.
void text_match::add_from(std::uint32_t at, index below, stacks& to) {
  const auto& symbols = of_->symbols_;
  for (; symbols[at].is != grammar::kind::end; ++at) {
    to.entries.push_back({at, below});
    if (!of_->can_be_empty(symbols[at])) return;
  }
  add(popped(below), to);
}

/// What remains where the alternatives on top have ended.
text_match::index text_match::popped(index of) {
  if (nodes_[of].popped != unknown) return nodes_[of].popped;
  stacks all{{}, nodes_[of].ends};
  for (std::size_t i = 0; i < nodes_[of].entries.size(); ++i) {
    const entry each = nodes_[of].entries[i];
    add_from(each.symbol, each.below, all);
  }
  const index made = merged(std::move(all));
  return nodes_[of].popped = made;
}

/// The stacks of `popped` with sets of bytes on top: rules are gone into, those that call others first, so that each is
/// gone into once for all its callers.
text_match::index text_match::expanded(index of) {
  if (nodes_[of].expanded != unknown) return nodes_[of].expanded;
  const auto& symbols = of_->symbols_;
  std::map<std::uint32_t, std::pair<grammar::rule, std::vector<index>>> calls;  // by rank: the rule, what is below it
  stacks tops{{}, nodes_[of].ends};
  const auto meet = [&](std::uint32_t at, index below) {
    count(1);
    if (symbols[at].is == grammar::kind::bytes) return tops.entries.push_back({at, below});
    // The last symbol of an alternative needs no return address.
    const index after = symbols[at + 1].is == grammar::kind::end ? below : intern({{at + 1, below}}, false);
    auto& call = calls[of_->rank_[symbols[at].index]];
    call.first = symbols[at].index;
    call.second.push_back(after);
  };
  for (std::size_t i = 0; i < nodes_[of].entries.size(); ++i) {
    const entry each = nodes_[of].entries[i];
    meet(each.symbol, each.below);
  }
  while (!calls.empty()) {
    const auto first = calls.extract(calls.begin());
    auto& [rule, list] = first.mapped();
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    const index below = united(list);
    for (std::uint32_t at : of_->alternatives_of(rule))
      for (; symbols[at].is != grammar::kind::end; ++at) {
        meet(at, below);
        if (!of_->can_be_empty(symbols[at])) break;
      }
  }
  const index made = merged(std::move(tops));
  return nodes_[of].expanded = made;
}

text_match::index text_match::step(index from, unsigned char byte) {
  const std::size_t wanted = of_->class_of_[byte], classes = of_->class_bytes_.size();
  if (nodes_[from].next == nullptr) {
    nodes_[from].next = std::make_unique<index[]>(classes);
    std::fill_n(nodes_[from].next.get(), classes, unknown);
    bytes_ += classes * sizeof(index);
  }
  if (const index known = nodes_[from].next[wanted]; known != unknown) return known;
  if (cancelled_) throw match_limit("nobody waits for the text");
  stacks after;
  count(nodes_[from].entries.size());
  for (std::size_t i = 0; i < nodes_[from].entries.size(); ++i) {
    const entry each = nodes_[from].entries[i];
    if (of_->sets_[of_->symbols_[each.symbol].index][of_->class_bytes_[wanted]])
      add_from(each.symbol + 1, each.below, after);
  }
  index to = expanded(merged(std::move(after)));
  // What is nested too deep may only become shorter, which some byte always does.
  if (to != dead && nodes_[to].depth > deep && nodes_[to].least >= nodes_[from].least) to = dead;
  return nodes_[from].next[wanted] = to;
}

text_match::index text_match::walk(index from, std::string_view bytes) {
  for (const char byte : bytes) {
    if (from == dead) break;
    from = step(from, static_cast<unsigned char>(byte));
  }
  return from;
}

/// Begins anew with the nodes that the roots need, whose indices change. The first root is where the text is.
void text_match::drop_all_but(std::vector<index>& roots) {
  std::vector<node> before = std::move(nodes_);
  std::vector<bool> wanted(before.size());
  std::vector<index> open = roots;
  while (!open.empty()) {
    const index each = open.back();
    open.pop_back();
    if (wanted[each]) continue;
    wanted[each] = true;
    for (const entry& of : before[each].entries) open.push_back(of.below);
  }
  const std::uint64_t work = std::exchange(work_, 0);
  clear();
  // What is below was there first.
  std::vector<index> now(before.size(), dead);
  for (index each = 0; each < before.size(); ++each) {
    if (!wanted[each]) continue;
    for (entry& of : before[each].entries) of.below = now[of.below];
    now[each] = intern(std::move(before[each].entries), before[each].ends);
  }
  for (index& each : roots) each = now[each];
  at_ = roots[0];
  work_ = work;
  if (bytes_ > most_kept_bytes / 2) throw match_limit("the form has too many readings of this text");
}

bool text_match::allows(std::string_view bytes, std::uint32_t bytes_left) {
  if (bytes.empty()) return false;
  const index to = walk(at_, bytes);
  return to != dead && nodes_[to].least <= bytes_left;
}

void text_match::take(std::string_view bytes) {
  const index to = walk(at_, bytes);
  if (to == dead) throw std::logic_error("a text outside of its grammar");
  at_ = to;
  most_work_ += work_of_byte * bytes.size();
  if (bytes_ <= most_kept_bytes) return;
  std::vector<index> here{at_};
  drop_all_but(here);
}

void text_match::mark_allowed(const token_bytes& tokens, std::uint32_t bytes_left, std::vector<bool>& allowed) {
  std::vector<index> path{at_};  // the state after each byte of the entry before; dead ends it
  for (const auto& each : tokens.entries()) {
    if (path.size() > each.shared + std::size_t{1}) path.resize(each.shared + std::size_t{1});
    while (path.back() != dead && path.size() <= each.text.size()) {
      if (bytes_ > most_kept_bytes) drop_all_but(path);
      path.push_back(step(path.back(), static_cast<unsigned char>(each.text[path.size() - 1])));
    }
    if (path.back() == dead) continue;
    allowed[static_cast<std::size_t>(each.id)] = nodes_[path.back()].least <= bytes_left;
  }
}

}  // namespace intaglio::serve
