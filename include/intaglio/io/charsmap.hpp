// SPDX-License-Identifier: MIT
// The precompiled map of a SentencePiece normaliser: texts that are replaced by other texts. The first four bytes have
// the size of a double-array trie (darts-clone). The trie follows, then all replacements, each with a NUL after it.
// Source: sentencepiece, src/normalizer.cc; the trie's units: darts-clone, include/darts.h.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// Limits of a SentencePiece character map that is read.
struct charsmap_limits {
  static constexpr std::size_t bytes = std::size_t{8} << 20;  ///< published ones have 300 KiB
  static constexpr std::size_t replacement_bytes = 256;       ///< the longest published one has 33
};

/// A map of texts to texts, validated as a whole before it is used. Without bytes it maps nothing.
class charsmap {
 public:
  charsmap() = default;
  /// @param source file that errors name
  /// @throws file_error: truncated, too large, an edge that leaves the trie or forms a cycle, a replacement that does
  /// not exist, is too long or is not UTF-8
  [[gnu::cold]] charsmap(std::string_view bytes, const std::string& source) {
    if (bytes.empty()) return;
    constexpr std::size_t head = 4, unit = 4;
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      throw file_error(source, std::nullopt, "tokenizer.ggml.precompiled_charsmap", expected, found);
    };
    if (bytes.size() < head || bytes.size() > charsmap_limits::bytes)
      refuse("4 to " + std::to_string(charsmap_limits::bytes) + " bytes", std::to_string(bytes.size()));
    const std::size_t trie = word_at(bytes, 0);
    // Blocks have 256 units: a byte of text leads to a unit of the same block.
    if (trie == 0 || trie % (256 * unit) != 0 || trie > bytes.size() - head)
      refuse("a trie in blocks of 1024 bytes, at most " + std::to_string(bytes.size() - head), std::to_string(trie));
    units_.reserve(trie / unit);
    for (std::size_t at = head; at < head + trie; at += unit) units_.push_back(word_at(bytes, at));
    texts_ = std::string(bytes.substr(head + trie));
    if (const std::string problem = judge(); !problem.empty()) refuse("a trie of texts and replacements", problem);
  }

  bool empty() const { return units_.empty(); }

  /// The replacement of the start of a text.
  struct replacement {
    std::size_t bytes = 0;  ///< bytes of the replaced text; 0: nothing is replaced
    std::string_view text{};
  };
  /// The longest start of text.substr(at) that the map has.
  replacement find(std::string_view text, std::size_t at) const {
    replacement out;
    if (empty()) return out;
    std::uint32_t base = offset(units_[0]);
    for (std::size_t next = at; next < text.size(); ++next) {
      const auto byte = static_cast<unsigned char>(text[next]);
      const std::uint32_t unit = units_[base ^ byte];
      if (byte == 0 || label(unit) != byte) break;
      base ^= byte ^ offset(unit);
      if (has_value(unit)) out = {next + 1 - at, replacement_at(units_[base] & largest_value)};
    }
    return out;
  }

 private:
  static constexpr std::uint32_t largest_value = 0x7FFFFFFF;
  static constexpr std::uint32_t label(std::uint32_t unit) { return unit & 0x800000FF; }
  static constexpr std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
  static constexpr bool has_value(std::uint32_t unit) { return (unit & 0x100) != 0; }
  static std::uint32_t word_at(std::string_view bytes, std::size_t at) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < 4; ++i)
      out |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * static_cast<unsigned>(i));
    return out;
  }
  std::string_view replacement_at(std::uint32_t at) const {
    return std::string_view(texts_).substr(at, texts_.find('\0', at) - at);
  }

  /// What is wrong with a value; empty where it is valid.
  [[gnu::cold]] std::string judge_value(std::uint32_t value) const {
    const std::string where = "replacement at " + std::to_string(value);
    if (value >= texts_.size()) return where + " of " + std::to_string(texts_.size()) + " bytes";
    const auto end = texts_.find('\0', value);
    if (end == texts_.npos) return where + " without an end";
    if (end - value > charsmap_limits::replacement_bytes)
      return where + " of more than " + std::to_string(charsmap_limits::replacement_bytes) + " bytes";
    return is_utf8(replacement_at(value)) ? std::string{} : where + " that is no UTF-8";
  }

  /// Walks every edge once. Branches may meet (darts-clone shares ends), but there may be no cycle.
  [[gnu::cold]] std::string judge() const {
    enum class state : std::uint8_t { unseen, open, done };
    std::vector<state> seen(units_.size(), state::unseen);
    struct step {
      std::uint32_t unit, base, next;  ///< next: the byte to try next
    };
    std::vector<step> path{{0, offset(units_[0]), 1}};
    while (!path.empty()) {
      step& at = path.back();
      if (at.base >= units_.size()) return "an edge from unit " + std::to_string(at.unit) + " out of the trie";
      if (at.next == 1) {
        if (at.unit != 0 && has_value(units_[at.unit]))
          if (std::string problem = judge_value(units_[at.base] & largest_value); !problem.empty()) return problem;
        seen[at.unit] = state::open;
      }
      while (at.next < 256 && label(units_[at.base ^ at.next]) != at.next) ++at.next;
      if (at.next == 256) {
        seen[at.unit] = state::done;
        path.pop_back();
        continue;
      }
      const std::uint32_t child = at.base ^ at.next++;
      if (seen[child] == state::open) return "a branch that leads back to unit " + std::to_string(child);
      if (seen[child] == state::unseen) path.push_back({child, child ^ offset(units_[child]), 1});
    }
    return {};
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace intaglio::io
