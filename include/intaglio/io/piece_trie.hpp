// SPDX-License-Identifier: MIT
// Finds the tokens that a text starts with: a trie over the bytes of tokens. Built once from a validated vocabulary;
// lookups allocate nothing.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/token_texts.hpp"

namespace intaglio::io {

/// The trie. The children of a node are beside each other, in the order of their bytes.
class piece_trie {
 public:
  piece_trie() = default;
  /// @param ids of the tokens in the trie; among those with the same bytes the first counts
  [[gnu::cold]] piece_trie(const token_texts& texts, std::vector<std::int32_t> ids) {
    sort_once(ids, [&](std::int32_t a, std::int32_t b) { return texts[a] < texts[b]; });
    ids.erase(std::unique(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) { return texts[a] == texts[b]; }),
              ids.end());
    struct range {
      std::size_t begin, end;  ///< of ids that start with the node's bytes
    };
    std::vector<range> ranges{{0, ids.size()}}, below;
    nodes_.push_back({});
    for (std::size_t depth = 0, first = 0; !ranges.empty(); ++depth) {  // all nodes of one length, then those of the
                                                                        // next
      below.clear();
      const std::size_t count = ranges.size();
      for (std::size_t i = 0; i < count; ++i) {
        auto [at, end] = ranges[i];
        if (at < end && texts[ids[at]].size() == depth) nodes_[first + i].id = ids[at++];
        nodes_[first + i].children = static_cast<std::uint32_t>(first + count + below.size());
        while (at < end) {
          const char byte = texts[ids[at]][depth];
          const std::size_t from = at;
          while (at < end && texts[ids[at]][depth] == byte) ++at;
          below.push_back({from, at});
          nodes_.push_back({});
          nodes_.back().byte = static_cast<std::uint8_t>(byte);
        }
      }
      first += count;
      ranges.swap(below);
    }
    nodes_.push_back({.children = static_cast<std::uint32_t>(nodes_.size())});  // where the last node's children end
  }

  /// Calls found(bytes, id) for each token that text.substr(at) starts with, the shortest first.
  template <class Found>
  void each_start(std::string_view text, std::size_t at, Found&& found) const {
    if (nodes_.empty()) return;
    for (std::size_t parent = 0, next = at; next < text.size(); ++next) {
      const auto byte = static_cast<std::uint8_t>(text[next]);
      const auto begin = nodes_.begin() + nodes_[parent].children, end = nodes_.begin() + nodes_[parent + 1].children;
      const auto child = std::lower_bound(begin, end, byte, [](const auto& n, std::uint8_t b) { return n.byte < b; });
      if (child == end || child->byte != byte) return;
      parent = static_cast<std::size_t>(child - nodes_.begin());
      if (child->id >= 0) found(next + 1 - at, child->id);
    }
  }

 private:
  struct node {
    std::uint32_t children = 0;  ///< index of the first child; the children end where those of the next node begin
    std::int32_t id = -1;        ///< token of these bytes; -1: none
    std::uint8_t byte = 0;       ///< the last of these bytes
  };
  std::vector<node> nodes_;
};

}  // namespace intaglio::io
