// SPDX-License-Identifier: MIT
// SentencePiece-style BPE ("llama"): spaces become U+2581, characters merge by score (GGUF) or by rank (Hugging Face
// files), and unknown text becomes one byte token for each byte. Bytes that are not UTF-8 become byte tokens too;
// nothing is replaced. Tokens of type unused are never produced.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/added_tokens.hpp"
#include "intaglio/io/byte_level_bpe.hpp"
#include "intaglio/io/merge_symbols.hpp"
#include "intaglio/io/token_texts.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// U+2581, the visible space of SentencePiece.
inline constexpr std::string_view lower_block = "\xE2\x96\x81";

/// `text` with spaces written as U+2581, or back.
inline std::string escape_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) c == ' ' ? void(out.append(lower_block)) : out.push_back(c);
  return out;
}
/// `text` with each U+2581 replaced by a space.
inline std::string unescape_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at, lower_block.size()) == lower_block;
    out.push_back(space ? ' ' : text[at]);
    at += space ? lower_block.size() : 1;
  }
  return out;
}

/// Whether a file writes spaces of tokens of this type as U+2581.
constexpr bool is_spaced(token_type type) {
  return type == token_type::normal || type == token_type::user_defined || type == token_type::unused;
}
/// The bytes of tokens in a file that has U+2581 for spaces, and names of bytes.
[[gnu::cold]] inline token_texts spaced_texts(const vocabulary& file, const std::vector<token_type>& types) {
  token_texts out;
  out.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto value = types[i] == token_type::byte ? byte_token_value(file.tokens[i]) : std::nullopt;
    out.add(value                 ? std::string(1, static_cast<char>(*value))
            : is_spaced(types[i]) ? unescape_spaces(file.tokens[i])
                                  : file.tokens[i]);
  }
  return out;
}

/// Whether a Hugging Face file adds this token to its model. Then it is searched for before spaces are escaped.
inline bool is_added(const vocabulary& file, std::size_t id) {
  return std::any_of(file.added.begin(), file.added.end(),
                     [&](const added_token& token) { return token.id == static_cast<std::int64_t>(id); });
}

/// Whether an added token is searched for in text with escaped spaces: where the normaliser of a Hugging Face file
/// escapes them, not its pre-tokenizer.
inline bool is_found_escaped(const vocabulary& file, const added_token& token) {
  return token.normalized && file.model == "llama" && !file.merges.empty() && !file.space_prefix_once;
}

/// The token of each byte, -1 for bytes without one. @throws file_error: a byte token without a byte, two tokens for a
/// byte
[[gnu::cold]] inline std::array<std::int32_t, 256> byte_tokens(const vocabulary& file,
                                                               const std::vector<token_type>& types) {
  std::array<std::int32_t, 256> out;
  out.fill(-1);
  for (std::size_t id = 0; id < types.size(); ++id) {
    if (types[id] != token_type::byte) continue;
    const auto where = "tokenizer.ggml.tokens[" + std::to_string(id) + "]";
    const auto value = byte_token_value(file.tokens[id]);
    if (!value)
      throw file_error(file.source, std::nullopt, where, "a byte token <0x00> .. <0xFF>",
                       "'" + printable(file.tokens[id]) + "'");
    if (out[*value] >= 0)
      throw file_error(file.source, std::nullopt, where, "each byte token once",
                       "'" + file.tokens[id] + "' again, first at " + std::to_string(out[*value]));
    out[*value] = static_cast<std::int32_t>(id);
  }
  return out;
}

/// Whether U+2581 follows another character: then a token crosses a boundary of words.
inline bool crosses_words(std::string_view text) {
  for (std::size_t at = text.find(lower_block, 1); at != std::string_view::npos; at = text.find(lower_block, at + 1))
    if (at < lower_block.size() || text.substr(at - lower_block.size(), lower_block.size()) != lower_block) return true;
  return false;
}

/// The encoder of "llama" vocabularies.
class sentencepiece_bpe {
 public:
  /// @param ordinary index of normal and user-defined tokens, by text with U+2581  @throws file_error: byte tokens,
  /// scores, merges
  [[gnu::cold]] sentencepiece_bpe(const vocabulary& file, const std::vector<token_type>& types,
                                  const token_texts& escaped, token_index ordinary)
      : ordinary_(std::move(ordinary)), texts_(escaped), add_space_prefix_(file.add_space_prefix.value_or(true)),
        prefix_once_(file.space_prefix_once) {
    bytes_ = byte_tokens(file, types);
    for (std::size_t byte = 0; byte < 256; ++byte)
      if (bytes_[byte] < 0)
        throw file_error(file.source, std::nullopt, "tokenizer.ggml.tokens", "a byte token for each of the 256 bytes",
                         "none for byte " + hexadecimal(byte));
    if (!file.merges.empty()) {
      merges_ = read_merges(file, [&](std::string_view part) { return ordinary_.find(texts_, part); });
      collect_escaped(file, types);
    } else {
      if (file.scores.empty())
        throw file_error(file.source, std::nullopt, "tokenizer.ggml.scores", "a score for each token",
                         "none, and no merges");
      rank_by_score(file.scores);
      std::vector<std::pair<std::string_view, std::int32_t>> user_defined;
      for (std::size_t id = 0; id < types.size(); ++id)
        if (types[id] == token_type::user_defined && !is_added(file, id) &&
            !texts_[static_cast<std::int32_t>(id)].empty())
          user_defined.emplace_back(texts_[static_cast<std::int32_t>(id)], static_cast<std::int32_t>(id));
      user_defined_ = {std::move(user_defined), {}};
    }
    for (std::size_t id = 0; id < types.size() && words_are_apart_; ++id)
      if (types[id] == token_type::normal || types[id] == token_type::user_defined)
        words_are_apart_ = !crosses_words(texts_[static_cast<std::int32_t>(id)]);
  }

  bool adds_space_prefix() const { return add_space_prefix_; }

  /// Appends the tokens of one stretch of plain text: the whole text, or the text between special tokens.
  /// @param first the stretch starts the whole text
  void encode(std::string_view text, bool first, merge_scratch& work, std::string& escaped,
              std::vector<std::int32_t>& out) const {
    if (text.empty()) return;
    escaped.clear();
    const bool spaced = text.starts_with(' ') || text.starts_with(lower_block);
    const bool wanted = !prefix_once_ || (!spaced && (first || !*prefix_once_));
    if (add_space_prefix_ && wanted) escaped.append(lower_block);
    for (const char c : text) c == ' ' ? void(escaped.append(lower_block)) : escaped.push_back(c);
    const std::string_view whole = escaped;
    user_defined_.split(
        whole, [](std::size_t, std::size_t, std::int32_t) { return true; },
        [&](std::size_t begin, std::size_t end) { encode_words(whole.substr(begin, end - begin), work, out); },
        [&](std::size_t, std::int32_t id) { out.push_back(id); });
  }

 private:
  /// Collects the added tokens that are searched for in escaped text, in the normaliser's spelling.
  [[gnu::cold]] void collect_escaped(const vocabulary& file, const std::vector<token_type>& types) {
    std::vector<std::string> texts;
    std::vector<std::pair<std::string_view, std::int32_t>> entries;
    texts.reserve(file.added.size());
    for (const added_token& token : file.added) {
      const auto id = static_cast<std::size_t>(token.id);
      if (!is_found_escaped(file, token) || types[id] != token_type::user_defined) continue;
      texts.push_back((add_space_prefix_ ? std::string(lower_block) : std::string{}) + escape_spaces(file.tokens[id]));
      entries.emplace_back(texts.back(), static_cast<std::int32_t>(id));
    }
    user_defined_ = {std::move(entries), file.added};
  }

  /// Where no token crosses a boundary of words, no merge can, so words are merged one by one: the tokens are equal and
  /// the pieces small.
  void encode_words(std::string_view text, merge_scratch& work, std::vector<std::int32_t>& out) const {
    if (!words_are_apart_) return encode_piece(text, work, out);
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      while (text.substr(end, lower_block.size()) == lower_block) end += lower_block.size();
      end = (std::min)(text.find(lower_block, end), text.size());
      encode_piece(text.substr(begin, end - begin), work, out);
      begin = end;
    }
  }

  void encode_piece(std::string_view text, merge_scratch& work, std::vector<std::int32_t>& out) const {
    if (text.empty()) return;
    split(text, work.symbols);
    merge_symbols(work, [&](const symbol& left, const symbol& right) {
      if (left.id >= 0 && right.id >= 0) return merges_.find(left.id, right.id);
      // Characters that are no tokens can still merge to one, where the vocabulary is ranked by score.
      if (ranks_.empty()) return token_merge{0, -1};
      const std::int32_t id = ordinary_.find(texts_, text.substr(left.begin, std::size_t{left.bytes} + right.bytes));
      return token_merge{id < 0 ? 0 : ranks_[static_cast<std::size_t>(id)], id};
    });
    put(text, work.symbols, out);
  }

  /// Adds every way to make a token of two tokens, ranked by its score: higher scores first, equal scores with equal
  /// rank.
  [[gnu::cold]] void rank_by_score(const std::vector<float>& scores) {
    std::vector<float> order(scores);
    std::sort(order.begin(), order.end(), std::greater<>{});
    order.erase(std::unique(order.begin(), order.end()), order.end());
    ranks_.reserve(scores.size());
    for (const float score : scores)
      ranks_.push_back(static_cast<std::uint32_t>(
          std::lower_bound(order.begin(), order.end(), score, std::greater<>{}) - order.begin()));
    struct pair {
      std::int32_t left, right, whole;
    };
    std::vector<pair> pairs;
    std::vector<char> lengths(ordinary_.longest() + 1);  // lengths of tokens: avoids lookups of texts that cannot be
                                                         // tokens
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(texts_.size()); ++id)
      if (texts_[id].size() < lengths.size()) lengths[texts_[id].size()] = 1;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(texts_.size()); ++id) {
      const std::string_view text = texts_[id];
      if (text.size() < 2 || ordinary_.find(texts_, text) != id) continue;
      for (std::size_t at = 1; at < text.size(); ++at) {
        if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80 || !lengths[at] || !lengths[text.size() - at])
          continue;
        const std::int32_t left = ordinary_.find(texts_, text.substr(0, at));
        const std::int32_t right = left < 0 ? -1 : ordinary_.find(texts_, text.substr(at));
        if (right >= 0) pairs.push_back({left, right, id});
      }
    }
    merges_ = merge_index{pairs.size()};
    for (const pair& p : pairs) merges_.insert(p.left, p.right, {ranks_[static_cast<std::size_t>(p.whole)], p.whole});
  }

  void split(std::string_view text, std::vector<symbol>& symbols) const {
    symbols.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::uint32_t bytes = decode_utf8(text, at).bytes;
      symbols.push_back({static_cast<std::uint32_t>(at), bytes, ordinary_.find(texts_, text.substr(at, bytes))});
      at += bytes;
    }
  }

  void put(std::string_view text, const std::vector<symbol>& symbols, std::vector<std::int32_t>& out) const {
    for (const symbol& s : symbols) {
      if (s.id >= 0) out.push_back(s.id);
      else
        for (std::uint32_t i = 0; i < s.bytes; ++i)
          out.push_back(bytes_[static_cast<unsigned char>(text[s.begin + i])]);
    }
  }

  token_index ordinary_;
  token_texts texts_;
  bool add_space_prefix_, words_are_apart_ = true;
  std::optional<bool> prefix_once_;
  std::array<std::int32_t, 256> bytes_{};
  std::vector<std::uint32_t> ranks_;  ///< of each token by its score; empty where the file has merges
  merge_index merges_;
  added_tokens user_defined_;
};

}  // namespace intaglio::io
