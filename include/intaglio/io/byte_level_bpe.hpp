// SPDX-License-Identifier: MIT
// Byte-level BPE ("gpt2"): text is cut into pieces, each piece starts as single bytes, and ranked merges join them.
// Bytes that are not UTF-8 are kept and come back from decoding; nothing is replaced.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/merge_symbols.hpp"
#include "intaglio/io/pretokenizer.hpp"
#include "intaglio/io/token_texts.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// GPT-2's printable alphabet: the code point that represents each byte in the token texts of files.
inline constexpr auto byte_alphabet = [] {
  std::array<char32_t, 256> out{};
  char32_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    out[byte] = printable ? static_cast<char32_t>(byte) : next++;
  }
  return out;
}();

/// The bytes that a text in the printable alphabet represents; absent where a character is not of the alphabet.
inline std::optional<std::string> from_byte_alphabet(std::string_view text) {
  static constexpr auto bytes = [] {
    std::array<std::int16_t, 0x144> out{};
    out.fill(-1);
    for (std::size_t byte = 0; byte < 256; ++byte) out[byte_alphabet[byte]] = static_cast<std::int16_t>(byte);
    return out;
  }();
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode_utf8(text, at);
    if (!next.valid || next.value >= bytes.size() || bytes[next.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(bytes[next.value]));
    at += next.bytes;
  }
  return out;
}

/// The two parts of an entry of tokenizer.ggml.merges. They are separated by the first space from position 1.
inline std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view merge) {
  const std::size_t space = merge.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == merge.size()) return std::nullopt;
  return std::pair{merge.substr(0, space), merge.substr(space + 1)};
}

/// Reads the merges of a vocabulary. @param token_of token_of(text) gives an id or -1, for texts as in the file
/// @throws file_error naming the merge: it has no two parts, a part or the whole is no token, or the pair occurred
/// before
template <class TokenOf>
[[gnu::cold]] merge_index read_merges(const vocabulary& file, TokenOf&& token_of) {
  merge_index out{file.merges.size()};
  const auto refuse = [&](std::size_t i, const std::string& expected) {
    throw file_error(file.source, std::nullopt, "tokenizer.ggml.merges[" + std::to_string(i) + "]", expected,
                     "'" + printable(file.merges[i]) + "'");
  };
  for (std::size_t i = 0; i < file.merges.size(); ++i) {
    const auto parts = split_merge(file.merges[i]);
    if (!parts) refuse(i, "two texts with a space between");
    const std::int32_t left = token_of(parts->first), right = token_of(parts->second);
    if (left < 0 || right < 0) refuse(i, "two tokens of the vocabulary");
    const std::int32_t whole = token_of(std::string(parts->first).append(parts->second));
    if (whole < 0) refuse(i, "two tokens that make a token of the vocabulary");
    if (!out.insert(left, right, {static_cast<std::uint32_t>(i), whole})) refuse(i, "each pair once");
  }
  return out;
}

/// The encoder of "gpt2" vocabularies.
class byte_level_bpe {
 public:
  /// @param texts bytes of all tokens  @param ordinary index of the tokens that plain text may become
  /// @throws file_error: a merge that read_merges refuses
  byte_level_bpe(const vocabulary& file, pretokenizer kind, bool ignore_merges, const token_texts& texts,
                 const token_index& ordinary)
      : kind_(kind), ignore_merges_(ignore_merges) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const char text = static_cast<char>(byte);
      bytes_[byte] = ordinary.find(texts, {&text, 1});
      missing_ += bytes_[byte] < 0;
    }
    merges_ = read_merges(file, [&](std::string_view part) {
      const auto raw = from_byte_alphabet(part);
      return raw ? ordinary.find(texts, *raw) : -1;
    });
  }

  pretokenizer kind() const { return kind_; }
  /// Number of bytes that have no token. As in llama.cpp and tokenizers they are lost unless a merge includes them.
  std::size_t missing_bytes() const { return missing_; }

  /// Appends the tokens of plain text. Each token takes at least one byte.
  void encode(std::string_view text, const token_texts& texts, const token_index& ordinary, merge_scratch& work,
              std::vector<std::int32_t>& out) const {
    split_pieces(kind_, text, [&](std::string_view piece) {
      if (ignore_merges_)
        if (const std::int32_t whole = ordinary.find(texts, piece); whole >= 0) return out.push_back(whole);
      work.symbols.clear();
      for (std::size_t i = 0; i < piece.size(); ++i)
        work.symbols.push_back({static_cast<std::uint32_t>(i), 1, bytes_[static_cast<unsigned char>(piece[i])]});
      merge_symbols(work, [&](const symbol& left, const symbol& right) { return merges_.find(left.id, right.id); });
      for (const symbol& s : work.symbols)
        if (s.id >= 0) out.push_back(s.id);
    });
  }

 private:
  pretokenizer kind_;
  bool ignore_merges_;
  std::size_t missing_ = 0;
  std::array<std::int32_t, 256> bytes_{};
  merge_index merges_;
};

}  // namespace intaglio::io
