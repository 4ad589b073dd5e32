// SPDX-License-Identifier: MIT
// Candidates for merging, lowest rank first, leftmost first where ranks are equal. Short pieces use a heap. Long pieces
// use one list for each rank: candidates mostly arrive from left to right, so most need no heap, and a rank is
// processed in one sweep through memory. A heap of 8 Mi entries costs four times as much.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace intaglio::io {

/// A set of numbers below 2^24 that finds its least member in four steps.
class number_set {
 public:
  void insert(std::uint32_t number) {
    for (auto& level : levels_) {
      const std::size_t word = number >> 6;
      if (level.size() <= word) level.resize(word + 1);
      level[word] |= std::uint64_t{1} << (number & 63);
      number >>= 6;
    }
  }
  void erase(std::uint32_t number) {
    for (auto& level : levels_) {
      if ((level[number >> 6] &= ~(std::uint64_t{1} << (number & 63))) != 0) return;
      number >>= 6;
    }
  }
  bool empty() const { return levels_.back().empty() || levels_.back()[0] == 0; }
  /// The least member; the set must not be empty.
  std::uint32_t least() const {
    std::uint32_t number = 0;
    for (std::size_t i = levels_.size(); i-- > 0;)
      number = number << 6 | static_cast<std::uint32_t>(std::countr_zero(levels_[i][number]));
    return number;
  }

 private:
  std::array<std::vector<std::uint64_t>, 4> levels_;
};

/// A queue of merges, the lowest rank first.
class rank_queue {
 public:
  struct entry {
    std::uint32_t left, bytes;
    std::int32_t result;
  };

  /// Empties the queue for a piece of this number of symbols. Ranks of 2^24 and more always use the heap.
  void start(std::size_t symbols) {
    heap_.clear();
    while (!ranks_.empty()) {  // left by a caller that stopped midway
      const std::uint32_t rank = ranks_.least();
      lists_[rank] = {};
      ranks_.erase(rank);
    }
    by_rank_ = symbols > longest_heaped_piece;
  }
  bool empty() const { return heap_.empty() && ranks_.empty(); }

  void push(std::uint32_t rank, const entry& candidate) {
    if (!by_rank_ || rank >= most_ranks) {
      heap_.push_back({rank, candidate});
      std::push_heap(heap_.begin(), heap_.end(), later);
      return;
    }
    if (lists_.size() <= rank) lists_.resize(rank + 1);
    list& at = lists_[rank];
    if (at.head == at.ascending.size() && at.heap.empty()) ranks_.insert(rank);
    if (at.head == at.ascending.size() || at.ascending.back().left <= candidate.left) {
      if (at.head == at.ascending.size()) at.ascending.clear(), at.head = 0;
      at.ascending.push_back(candidate);
    } else {
      at.heap.push_back(candidate);
      std::push_heap(at.heap.begin(), at.heap.end(), right_of);
    }
  }

  /// Removes and gives the first candidate; the queue must not be empty.
  entry pop() {
    if (!ranks_.empty()) {
      const std::uint32_t rank = ranks_.least();
      list& at = lists_[rank];
      const bool from_heap =
          at.head == at.ascending.size() || (!at.heap.empty() && at.heap.front().left < at.ascending[at.head].left);
      entry out;
      if (from_heap) {
        std::pop_heap(at.heap.begin(), at.heap.end(), right_of);
        out = at.heap.back();
        at.heap.pop_back();
      } else {
        out = at.ascending[at.head++];
      }
      if (at.head == at.ascending.size() && at.heap.empty()) at.ascending.clear(), at.head = 0, ranks_.erase(rank);
      return out;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const entry out = heap_.back().candidate;
    heap_.pop_back();
    return out;
  }

 private:
  static constexpr std::size_t longest_heaped_piece = 8192;
  static constexpr std::uint32_t most_ranks = 1u << 24;
  struct ranked {
    std::uint32_t rank;
    entry candidate;
  };
  struct list {
    std::vector<entry> ascending, heap;
    std::size_t head = 0;  ///< first of `ascending` that is not taken
  };
  static bool right_of(const entry& a, const entry& b) { return a.left > b.left; }
  static bool later(const ranked& a, const ranked& b) {
    return a.rank > b.rank || (a.rank == b.rank && a.candidate.left > b.candidate.left);
  }

  std::vector<ranked> heap_;
  std::vector<list> lists_;
  number_set ranks_;
  bool by_rank_ = false;
};

}  // namespace intaglio::io
