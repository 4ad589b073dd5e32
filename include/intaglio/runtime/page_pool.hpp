// SPDX-License-Identifier: MIT
// Tracks on the host which sequences use which pages of the pool. Full pages of prompts are remembered by their tokens
// and all tokens before them, so that prompts with the same beginning share them. A page that no sequence uses stays
// remembered until another sequence needs it; the page unused for longest is taken first.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace intaglio::runtime {

/// Distributes the pages of a KV cache among sequences; equal prefixes share pages.
class page_pool {
 public:
  /// The pages of one sequence, by position / page_size. Other sequences may use the first `shared` pages too; those
  /// pages are only read.
  struct list {
    std::vector<std::uint32_t> pages;
    std::uint32_t shared = 0;
    std::uint64_t root = 0;  ///< as given to take()
  };

  page_pool(std::uint32_t pages, std::uint32_t page_size) : page_size_(page_size), pages_(pages) {
    for (std::uint32_t number = pages; number-- > 0;) unused_.push_back(number);
  }

  std::uint32_t page_size() const noexcept { return page_size_; }
  /// Number of pages that no sequence uses, remembered or not.
  std::uint32_t free() const noexcept { return static_cast<std::uint32_t>(unused_.size() + idle_.size()); }
  std::uint32_t pages_of(std::uint32_t positions) const noexcept { return (positions + page_size_ - 1) / page_size_; }
  /// Whether take() would return pages for these positions.
  bool has_room(std::span<const std::int32_t> tokens, std::uint32_t positions, std::uint64_t root = 0) const {
    const auto known = remembered(tokens, positions, root);
    std::uint32_t idle = 0;
    for (const std::uint32_t number : known) idle += pages_[number].users == 0 ? 1 : 0;
    return pages_of(positions) - known.size() <= free() - idle;
  }

  /// Takes pages for `positions` positions of a sequence that begins with `tokens`, remembered pages first; empty where
  /// there are too few.
  /// @param root what the sequence's keys and values depend on besides its tokens (adapter_key): sequences with
  ///   different roots share no pages
  std::optional<list> take(std::span<const std::int32_t> tokens, std::uint32_t positions, std::uint64_t root = 0) {
    if (!has_room(tokens, positions, root)) return std::nullopt;
    list out{remembered(tokens, positions, root), 0, root};
    out.shared = static_cast<std::uint32_t>(out.pages.size());
    for (const std::uint32_t number : out.pages) use(number);
    while (out.pages.size() < pages_of(positions)) out.pages.push_back(fresh());
    return out;
  }

  /// Adds pages up to `positions` positions in all. @return false: there are too few, and nothing has changed
  bool grow(list& of, std::uint32_t positions) {
    const std::uint32_t wanted = pages_of(positions);
    if (wanted > of.pages.size() && wanted - of.pages.size() > free()) return false;
    while (of.pages.size() < wanted) of.pages.push_back(fresh());
    return true;
  }

  /// Replaces pages that are not written yet by pages that were remembered since take().
  void share(list& of, std::span<const std::int32_t> tokens, std::uint32_t positions) {
    const auto known = remembered(tokens, positions, of.root);
    for (std::uint32_t i = of.shared; i < known.size(); ++i) {
      use(known[i]);
      unused_.push_back(of.pages[i]);
      pages_[of.pages[i]].users = 0;
      of.pages[i] = known[i];
    }
    of.shared = (std::max)(of.shared, static_cast<std::uint32_t>(known.size()));
  }

  /// Notes that the first tokens.size() positions are written: their full pages may be shared from now on.
  void remember(list& of, std::span<const std::int32_t> tokens) {
    std::uint64_t parent = of.root;
    for (std::uint32_t i = 0; (std::size_t{i} + 1) * page_size_ <= tokens.size() && i < of.pages.size(); ++i) {
      page& own = pages_[of.pages[i]];
      if (own.spoiled) return;
      if (own.number == 0) {
        const auto part = tokens.subspan(std::size_t{i} * page_size_, page_size_);
        const auto [at, added] = names_.try_emplace(name{parent, {part.begin(), part.end()}}, of.pages[i]);
        if (!added) {  // another sequence has written the same page meanwhile; later pages are found under its page
          parent = pages_[at->second].number;
          continue;
        }
        own.number = ++last_number_;
        own.called = at;
      }
      parent = own.number;
      of.shared = (std::max)(of.shared, i + 1);
    }
  }

  /// The remembered full pages at the beginning of a sequence, in order.
  std::vector<std::uint32_t> known(std::span<const std::int32_t> tokens, std::uint64_t root = 0) const {
    return remembered(tokens, static_cast<std::uint32_t>(tokens.size()), root);
  }
  /// Forgets the pages of `tokens` that no slot uses, from the last one back. @return their number
  std::uint32_t forget(std::span<const std::int32_t> tokens, std::uint64_t root = 0) {
    const auto pages = known(tokens, root);
    std::uint32_t out = 0;
    for (std::size_t i = pages.size(); i-- > 0; ++out) {
      page& own = pages_[pages[i]];
      if (own.users != 0) break;
      idle_.erase({own.since, pages[i]});
      names_.erase(own.called);
      own.number = 0;
      unused_.push_back(pages[i]);
    }
    return out;
  }

  /// Names of the remembered full pages at the beginning of a sequence, in order. A page gets a new name when its
  /// content changes. A name is never 0 and never used twice.
  std::vector<std::uint64_t> names_of(std::span<const std::int32_t> tokens, std::uint64_t root = 0) const {
    std::vector<std::uint64_t> out;
    for (const std::uint32_t which : known(tokens, root)) out.push_back(pages_[which].number);
    return out;
  }

  /// Ends a sequence. Its last pages are forgotten first.
  void release(list& of) {
    for (std::size_t i = of.pages.size(); i-- > 0;) {
      page& own = pages_[of.pages[i]];
      if (--own.users != 0) continue;
      if (own.spoiled) spoiled_.push_back(of.pages[i]);
      else if (own.number == 0) unused_.push_back(of.pages[i]);
      else idle_.insert({own.since = ++clock_, of.pages[i]});
    }
    of = {};
  }

  /// Marks pages whose values are not finite: they are no longer remembered. Their next user must not read them, so
  /// after their last user they are in spoiled() until cleaned().
  void spoil(const list& of) {
    for (const std::uint32_t which : of.pages) {
      page& own = pages_[which];
      if (own.number != 0) names_.erase(own.called);
      own.number = 0;
      own.spoiled = true;
    }
  }
  const std::vector<std::uint32_t>& spoiled() const noexcept { return spoiled_; }
  void cleaned() {
    for (const std::uint32_t which : spoiled_) pages_[which].spoiled = false;
    unused_.insert(unused_.end(), spoiled_.begin(), spoiled_.end());
    spoiled_.clear();
  }

 private:
  /// Name of a page: the number of the previous page, or the root; the tokens.
  using name = std::pair<std::uint64_t, std::vector<std::int32_t>>;
  struct page {
    std::uint32_t users = 0;
    std::uint64_t number = 0;  ///< of its content, never used again; 0: not remembered
    std::uint64_t since = 0;
    bool spoiled = false;
    std::map<name, std::uint32_t>::iterator called{};
  };

  std::vector<std::uint32_t> remembered(std::span<const std::int32_t> tokens, std::uint32_t positions,
                                        std::uint64_t root) const {
    std::vector<std::uint32_t> out;
    std::uint64_t parent = root;
    // The last token is fed by a pass of its own, which writes its position.
    for (std::size_t end = page_size_; end < tokens.size() && end <= positions; end += page_size_) {
      const auto part = tokens.subspan(end - page_size_, page_size_);
      const auto found = names_.find(name{parent, {part.begin(), part.end()}});
      if (found == names_.end()) break;
      out.push_back(found->second);
      parent = pages_[found->second].number;
    }
    return out;
  }
  void use(std::uint32_t which) {
    page& own = pages_[which];
    if (own.users++ == 0) idle_.erase({own.since, which});
  }
  std::uint32_t fresh() {
    std::uint32_t which = 0;
    if (!unused_.empty()) {
      which = unused_.back();
      unused_.pop_back();
    } else {
      which = idle_.begin()->second;
      idle_.erase(idle_.begin());
      names_.erase(pages_[which].called);
      pages_[which].number = 0;
    }
    pages_[which].users = 1;
    return which;
  }

  std::uint32_t page_size_;
  std::vector<page> pages_;
  std::vector<std::uint32_t> unused_;  ///< without remembered content
  std::vector<std::uint32_t> spoiled_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> idle_;  ///< remembered and not in use, by time
  std::map<name, std::uint32_t> names_;
  std::uint64_t last_number_ = 0, clock_ = 0;
};

}  // namespace intaglio::runtime
