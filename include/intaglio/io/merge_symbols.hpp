// SPDX-License-Identifier: MIT
// The merging loop of byte pair encoding: the pair of lowest rank is merged first, the leftmost where ranks are equal,
// until no pair merges. Short pieces use a scan of all pairs, others rank_queue, so n symbols cost at most O(n log n).
#pragma once

#include <cstdint>
#include <vector>

#include "intaglio/io/rank_queue.hpp"
#include "intaglio/io/token_texts.hpp"

namespace intaglio::io {

/// A run of bytes of the current piece and its token; id -1 while the bytes are no token.
struct symbol {
  std::uint32_t begin = 0, bytes = 0;
  std::int32_t id = -1;
};

/// Scratch of merge_symbols, kept between pieces so that encoding does not allocate for each.
struct merge_scratch {
  struct link {
    std::int32_t previous, next;
  };
  std::vector<symbol> symbols;
  std::vector<token_merge> pairs;
  std::vector<link> links;
  rank_queue queue;
};

/// Number of symbols up to which merging scans all pairs; longer pieces use a queue.
inline constexpr std::size_t longest_scanned_piece = 48;

/// Merges scratch.symbols in place. @param find find(const symbol& left, const symbol& right) gives a token_merge, with
/// result -1 for none
template <class Find>
void merge_symbols(merge_scratch& scratch, Find&& find) {
  auto& symbols = scratch.symbols;
  if (symbols.size() < 2) return;

  if (symbols.size() <= longest_scanned_piece) {
    auto& pairs = scratch.pairs;
    pairs.clear();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs.push_back(find(symbols[i], symbols[i + 1]));
    for (;;) {
      std::size_t best = pairs.size();
      for (std::size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i].result >= 0 && (best == pairs.size() || pairs[i].rank < pairs[best].rank)) best = i;
      if (best == pairs.size()) return;
      symbols[best].bytes += symbols[best + 1].bytes;
      symbols[best].id = pairs[best].result;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
      if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
      if (best < pairs.size()) pairs[best] = find(symbols[best], symbols[best + 1]);
    }
  }

  auto& links = scratch.links;
  auto& queue = scratch.queue;
  const auto count = static_cast<std::int32_t>(symbols.size());
  const auto at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    const symbol &a = symbols[at(left)], &b = symbols[at(right)];
    const token_merge merge = find(a, b);
    if (merge.result >= 0) queue.push(merge.rank, {static_cast<std::uint32_t>(left), a.bytes + b.bytes, merge.result});
  };
  links.resize(symbols.size());
  queue.start(symbols.size());
  for (std::int32_t i = 0; i < count; ++i) {
    links[at(i)] = {i - 1, i + 1 < count ? i + 1 : -1};
    if (i > 0) offer(i - 1, i);
  }
  while (!queue.empty()) {
    const rank_queue::entry top = queue.pop();
    // Symbols only grow, and a merged one has no bytes, so equal sums mean that neither side has changed.
    symbol& left = symbols[top.left];
    const std::int32_t right = links[top.left].next;
    if (left.bytes == 0 || right < 0 || left.bytes + symbols[at(right)].bytes != top.bytes) continue;
    left.bytes = top.bytes, left.id = top.result;
    symbols[at(right)].bytes = 0;
    const std::int32_t after = links[at(right)].next, before = links[top.left].previous;
    links[top.left].next = after;
    if (before >= 0) offer(before, static_cast<std::int32_t>(top.left));
    if (after >= 0) {
      links[at(after)].previous = static_cast<std::int32_t>(top.left);
      offer(static_cast<std::int32_t>(top.left), after);
    }
  }
  std::erase_if(symbols, [](const symbol& s) { return s.bytes == 0; });
}

}  // namespace intaglio::io
