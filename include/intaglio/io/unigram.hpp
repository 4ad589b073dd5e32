// SPDX-License-Identifier: MIT
// Unigram, SentencePiece's other model: text is normalised and divided into the tokens with the largest sum of scores
// (Viterbi). Source: Kudo 2018; sentencepiece, src/unigram_model.cc and src/normalizer.cc; tokenizers, models/unigram.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/added_tokens.hpp"
#include "intaglio/io/charsmap.hpp"
#include "intaglio/io/piece_trie.hpp"
#include "intaglio/io/sentencepiece_bpe.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// The score of a character without a token is this much below the lowest score of a token.
inline constexpr double unknown_penalty = 10;

/// Normalised text may be longer than the text; this is the largest accepted length.
inline constexpr std::size_t most_normal_bytes = std::size_t{1} << 30;

/// The encoder of "t5" vocabularies. It reads each byte that is not UTF-8 as U+FFFD.
class unigram {
 public:
  /// @param written the tokens' texts as in the file  @param unknown the token of text without tokens, where that does
  /// not become bytes  @throws file_error: no scores, a byte token that is invalid or occurs twice, an invalid charsmap
  [[gnu::cold]] unigram(const vocabulary& file, const std::vector<token_type>& types, const token_texts& written,
                        std::int32_t unknown)
      : map_(file.charsmap, file.source), spaces_(file.spaces), unknown_(unknown),
        add_space_prefix_(file.add_space_prefix.value_or(false)), trims_(file.remove_extra_whitespaces.value_or(false)),
        prefix_once_(file.space_prefix_once) {
    if (file.scores.empty())
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.scores", "a score for each token", "none");
    bytes_ = byte_tokens(file, types);
    double lowest = std::numeric_limits<double>::infinity();
    std::vector<std::int32_t> ids;
    for (std::size_t id = 0; id < types.size(); ++id) {
      if (types[id] != token_type::normal || file.tokens[id].empty()) continue;
      ids.push_back(static_cast<std::int32_t>(id));
      lowest = (std::min)(lowest, double{file.scores[id]});
      crosses_words_ = crosses_words_ || crosses_words(file.tokens[id]);
    }
    if (ids.empty())
      throw file_error(file.source, std::nullopt, "tokenizer.ggml.tokens", "tokens that text may become", "none");
    pieces_ = piece_trie(written, std::move(ids));
    scores_ = file.scores;
    unknown_score_ = lowest - unknown_penalty;
  }

  bool adds_space_prefix() const { return add_space_prefix_; }

  /// Appends the tokens of one stretch of plain text: the whole text, or the text between special tokens.
  /// @param first the stretch starts the whole text
  /// @throws argument_error: more than 1 GiB of normalised text
  [[gnu::cold]] void encode(std::string_view text, bool first, std::vector<std::int32_t>& out) const {
    const std::string normal = normalized(text);
    work with{{}, {}, {}, {}, out};
    if (!spaces_.split) return encode_stretch(trimmed(normal), first, with);
    for (std::size_t at = 0; at < normal.size();) {
      const std::size_t begin = at;
      while (at < normal.size() && !is_space(decode_utf8(normal, at))) at += decode_utf8(normal, at).bytes;
      if (at > begin) encode_stretch(std::string_view(normal).substr(begin, at - begin), false, with);
      if (at < normal.size()) at += decode_utf8(normal, at).bytes;
    }
  }

 private:
  /// The best division of the text that ends at a byte.
  struct path_end {
    double score = 0;
    std::int32_t id = -1;     ///< id of its last token; -1: none ends here
    std::uint32_t bytes = 0;  ///< length of that token
  };
  struct work {
    std::vector<path_end> ends;
    std::vector<std::size_t> stops;  ///< where tokens end, the last first
    std::string escaped, unknown;    ///< unknown: text without tokens that is not written yet
    std::vector<std::int32_t>& out;
  };
  static bool is_space(const code_point& c) { return c.valid && class_of(c.value) == unicode_class::space; }

  std::string normalized(std::string_view text) const {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      if (const auto found = map_.find(text, at); found.bytes != 0) {
        out.append(found.text), at += found.bytes;
      } else {
        const code_point next = decode_utf8(text, at);
        if (next.valid) out.append(text.substr(at, next.bytes));
        else append_utf8(out, U'\uFFFD');
        at += next.bytes;
      }
      if (out.size() > most_normal_bytes) throw argument_error("text", "at most 1 GiB when it is normalised", "more");
    }
    if (!spaces_.merged && !trims_) return out;
    out.erase(std::unique(out.begin(), out.end(), [](char a, char b) { return a == ' ' && b == ' '; }), out.end());
    return out;
  }
  std::string_view trimmed(std::string_view text) const {
    if (trims_ && text.starts_with(' ')) text.remove_prefix(1);  // runs of spaces are already merged to one
    if (trims_ && text.ends_with(' ')) text.remove_suffix(1);
    if (spaces_.end_stripped)
      for (code_point c{}; !text.empty() && is_space(c = code_point_before(text, text.size()));)
        text.remove_suffix(c.bytes);
    return text;
  }

  /// Encodes text with its spaces as U+2581, cut in front of those that begin words, where no token crosses them.
  void encode_stretch(std::string_view text, bool first, work& with) const {
    if (text.empty()) return;
    with.escaped.clear();
    const bool spaced = text.starts_with(' ') || text.starts_with(lower_block);
    const bool wanted = !prefix_once_ || (!spaced && (first || !*prefix_once_));
    if (add_space_prefix_ && wanted) with.escaped.append(lower_block);
    for (const char c : text) c == ' ' ? void(with.escaped.append(lower_block)) : with.escaped.push_back(c);
    const std::string_view whole = with.escaped;
    for (std::size_t begin = 0, end = 0; begin < whole.size(); begin = end) {
      if (!spaces_.words && crosses_words_) {
        end = whole.size();
      } else {
        while (whole.substr(end).starts_with(lower_block)) {
          end += lower_block.size();
          if (spaces_.words) break;
        }
        end = (std::min)(whole.find(lower_block, end), whole.size());
      }
      encode_word(whole.substr(begin, end - begin), with);
      if (spaces_.words) put_unknown(with);
    }
    put_unknown(with);
  }

  /// Adjacent unknown characters are one token, even across the ends of words that are cut for speed.
  void encode_word(std::string_view text, work& with) const {
    std::vector<path_end>& ends = with.ends;
    ends.assign(text.size() + 1, {});
    for (std::size_t at = 0; at < text.size();) {
      const std::uint32_t character = decode_utf8(text, at).bytes;
      const double before = ends[at].score;
      bool alone = false;  // whether a token is this one character
      const auto reach = [&](std::size_t bytes, std::int32_t id, double score) {
        path_end& end = ends[at + bytes];
        if (end.id < 0 || score > end.score) end = {score, id, static_cast<std::uint32_t>(bytes)};
      };
      pieces_.each_start(text, at, [&](std::size_t bytes, std::int32_t id) {
        reach(bytes, id, before + double{scores_[static_cast<std::size_t>(id)]});
        alone = alone || bytes == character;
      });
      if (!alone) reach(character, unknown_, before + unknown_score_);
      at += character;
    }
    with.stops.clear();
    for (std::size_t at = text.size(); at > 0; at -= ends[at].bytes) with.stops.push_back(at);
    for (auto stop = with.stops.rbegin(); stop != with.stops.rend(); ++stop) {
      const path_end& end = ends[*stop];
      if (end.id == unknown_) {
        with.unknown.append(text.substr(*stop - end.bytes, end.bytes));
      } else {
        put_unknown(with);
        with.out.push_back(end.id);
      }
    }
  }
  /// Writes text without tokens as bytes, where all its bytes are tokens; else as one unknown token.
  void put_unknown(work& with) const {
    if (with.unknown.empty()) return;
    const auto token = [&](char c) { return bytes_[static_cast<unsigned char>(c)]; };
    if (std::all_of(with.unknown.begin(), with.unknown.end(), [&](char c) { return token(c) >= 0; }))
      for (const char c : with.unknown) with.out.push_back(token(c));
    else with.out.push_back(unknown_);
    with.unknown.clear();
  }

  charsmap map_;
  unigram_spaces spaces_;
  piece_trie pieces_;
  std::vector<float> scores_;
  std::array<std::int32_t, 256> bytes_{};
  double unknown_score_ = 0;
  std::int32_t unknown_;
  bool add_space_prefix_, trims_, crosses_words_ = false;
  std::optional<bool> prefix_once_;
};

}  // namespace intaglio::io
