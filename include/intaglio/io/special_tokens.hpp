// SPDX-License-Identifier: MIT
// Finds the texts of special tokens in text: from left to right, the longest one at each position.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/token_texts.hpp"

namespace intaglio::io {

/// An occurrence of a special token's text.
struct special_match {
  std::size_t begin = 0, bytes = 0;
  std::int32_t id = -1;  ///< -1: none
};

/// The texts of special tokens, sorted, so that a search narrows a range byte by byte. Built once, then only read.
class special_tokens {
 public:
  special_tokens() = default;
  /// @param entries texts (not empty) and their tokens; among equal texts the lowest token counts
  explicit special_tokens(std::vector<std::pair<std::string_view, std::int32_t>> entries) {
    sort_once(entries, std::less<>{});
    for (const auto& [text, id] : entries) {
      if (texts_.size() > 0 && texts_[static_cast<std::int32_t>(texts_.size()) - 1] == text) continue;
      texts_.add(text);
      ids_.push_back(id);
      starts_[static_cast<unsigned char>(text[0])] = true;
    }
  }
  bool empty() const { return ids_.empty(); }

  /// The first occurrence at or after `from` that allowed(begin, bytes, id) accepts; the longest accepted one at its
  /// position.
  template <class Allowed>
  special_match find(std::string_view text, std::size_t from, Allowed&& allowed) const {
    if (empty()) return {};
    for (std::size_t begin = from; begin < text.size(); ++begin) {
      if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
      special_match found;
      auto low = ids_.begin(), high = ids_.end();
      for (std::size_t depth = 0; low != high && begin + depth < text.size(); ++depth) {
        // All of [low, high) share their first `depth` bytes and are longer than that.
        const auto byte = static_cast<unsigned char>(text[begin + depth]);
        low = std::partition_point(low, high, [&](const std::int32_t& id) { return at(id, depth) < byte; });
        high = std::partition_point(low, high, [&](const std::int32_t& id) { return at(id, depth) == byte; });
        if (low == high || texts_[index_of(*low)].size() != depth + 1) continue;
        if (allowed(begin, depth + 1, *low)) found = {begin, depth + 1, *low};
        ++low;
      }
      if (found.id >= 0) return found;
    }
    return {};
  }

 private:
  std::int32_t index_of(const std::int32_t& id) const { return static_cast<std::int32_t>(&id - ids_.data()); }
  unsigned char at(const std::int32_t& id, std::size_t depth) const {
    return static_cast<unsigned char>(texts_[index_of(id)][depth]);
  }

  token_texts texts_;
  std::vector<std::int32_t> ids_;
  std::array<bool, 256> starts_{};
};

}  // namespace intaglio::io
