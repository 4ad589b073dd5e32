// SPDX-License-Identifier: MIT
// Reads a vocabulary from tiktoken's list of ranks: lines with a token in base64, a space and its rank. Llama 3's own
// checkpoints and GLM-4's have such a list as their tokenizer.model. The list has neither special tokens nor the rules
// by which text is cut. So only these lists are accepted, recognised by their number of ranks (meta-llama/llama3,
// llama/tokenizer.py; zai-org/glm-4-9b-chat, tokenization_chatglm.py).
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/byte_level_bpe.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/token_texts.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Limits of a tiktoken list that is read.
struct tiktoken_limits {
  static constexpr std::uint64_t file_bytes = std::uint64_t{16} << 20;
  static constexpr std::size_t ranks = 128'000, special = 256;  ///< of Llama 3, the second behind the first
  static constexpr std::size_t glm4_ranks = 151'329;            ///< tokenizer_config.json names its special tokens
  static constexpr std::size_t token_bytes = 128, merges = 1'000'000;  // Llama 3 has 280,147
};

/// Whether a file begins like such a list. @param begin the first bytes of the file
constexpr bool is_tiktoken_list(std::string_view begin) {
  const std::string_view line = begin.substr(0, begin.find('\n'));
  const std::size_t space = line.find(' ');
  return line.size() < begin.size() && space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
         line.substr(space + 1).find_first_not_of("0123456789") == std::string_view::npos &&
         line.substr(0, space).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
             std::string_view::npos;
}

/// The bytes of base64 text (RFC 4648, with padding); absent for any other text.
inline std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto value = [](char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
  };
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    const std::size_t padding = last && text[at + 3] == '=' ? (text[at + 2] == '=' ? 2 : 1) : 0;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const int digit = i + padding >= 4 ? 0 : value(text[at + i]);
      if (digit < 0) return std::nullopt;
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    if ((bits & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (std::size_t i = 0; i + padding < 3; ++i) out += static_cast<char>(bits >> (16 - 8 * i) & 0xFF);
  }
  return out;
}

/// Reads the lines, then derives merges from the ranks: every way to make a token of two others, in the order of its
/// rank, as in the model's tokenizer.json.
class tiktoken_reader {
 public:
  tiktoken_reader(std::string_view text, std::string path) : path_(std::move(path)) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = (std::min)(text.find('\n', at), text.size());
      read_line(text.substr(at, end - at), at);
      at = end + 1;
    }
    if (tokens_.size() != tiktoken_limits::ranks && tokens_.size() != tiktoken_limits::glm4_ranks)
      refuse(0, "ranks of the list",
             std::to_string(tiktoken_limits::ranks) + " as Llama 3 has or " +
                 std::to_string(tiktoken_limits::glm4_ranks) +
                 " as GLM-4 has (for another model put its tokenizer.json beside it)",
             std::to_string(tokens_.size()));
  }

  [[gnu::cold]] vocabulary result() const {
    vocabulary out;
    out.source = path_;
    out.model = "gpt2";
    const bool glm4 = tokens_.size() == tiktoken_limits::glm4_ranks;
    out.pre_tokenizer = glm4 ? "chatglm-bpe" : "llama-bpe";
    for (const std::string& each : tokens_) out.tokens.push_back(in_alphabet(each));
    add_merges(out);
    out.token_types.assign(tokens_.size(), static_cast<std::int32_t>(token_type::normal));
    if (glm4) {
      out.add_bos = out.add_eos = out.ignore_merges = false;
      return out;
    }
    constexpr std::array<std::pair<std::size_t, std::string_view>, 5> named{{{0, "<|begin_of_text|>"},
                                                                             {1, "<|end_of_text|>"},
                                                                             {6, "<|start_header_id|>"},
                                                                             {7, "<|end_header_id|>"},
                                                                             {9, "<|eot_id|>"}}};
    for (std::size_t i = 0, reserved = 0; i < tiktoken_limits::special; ++i) {
      const auto name = std::find_if(named.begin(), named.end(), [&](const auto& each) { return each.first == i; });
      out.tokens.push_back(name != named.end() ? std::string(name->second)
                                               : "<|reserved_special_token_" + std::to_string(reserved++) + "|>");
      out.token_types.push_back(static_cast<std::int32_t>(token_type::control));
    }
    const auto first = static_cast<std::int64_t>(tokens_.size());
    out.bos_id = first, out.eos_id = first + 1, out.eot_id = first + 9;
    out.add_bos = true, out.add_eos = false, out.ignore_merges = true;
    return out;
  }

 private:
  [[noreturn]] void refuse(std::size_t offset, std::string what, std::string expected, std::string found) const {
    throw file_error(path_, offset, std::move(what), std::move(expected), std::move(found));
  }

  void read_line(std::string_view line, std::size_t offset) {
    const std::string what = "line " + std::to_string(tokens_.size() + 1);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos)
      refuse(offset, what, "a token in base64, a blank and its rank", "'" + printable(line, 60) + "'");
    const std::string_view digits = line.substr(space + 1);
    std::size_t rank = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (problem != std::errc{} || end != digits.data() + digits.size() || rank != tokens_.size())
      refuse(offset, what + ": rank", std::to_string(tokens_.size()) + ", as the lines before it count",
             "'" + printable(digits, 40) + "'");
    if (rank == tiktoken_limits::glm4_ranks)
      refuse(offset, what, "no more than " + std::to_string(tiktoken_limits::glm4_ranks) + " lines, as GLM-4 has",
             "more");
    const auto bytes = decode_base64(line.substr(0, space));
    if (!bytes || bytes->empty() || bytes->size() > tiktoken_limits::token_bytes)
      refuse(offset, what + ": token", "base64 of 1 to " + std::to_string(tiktoken_limits::token_bytes) + " bytes",
             "'" + printable(line.substr(0, space), 60) + "'");
    const auto [before, added] = ranks_.emplace(*bytes, static_cast<std::uint32_t>(rank));
    if (!added)
      refuse(offset, what + ": token", "one that was not there before",
             "that of line " + std::to_string(before->second + 1));
    tokens_.push_back(before->first);
  }

  static std::string in_alphabet(std::string_view bytes) {
    std::string out;
    for (const char byte : bytes) append_utf8(out, byte_alphabet[static_cast<unsigned char>(byte)]);
    return out;
  }

  [[gnu::cold]] void add_merges(vocabulary& out) const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;
    for (const std::string& token : tokens_) {
      ways.clear();
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        const auto left = ranks_.find(std::string_view(token).substr(0, cut)),
                   right = ranks_.find(std::string_view(token).substr(cut));
        if (left != ranks_.end() && right != ranks_.end()) ways.emplace_back(left->second, right->second);
      }
      std::sort(ways.begin(), ways.end());
      if (out.merges.size() + ways.size() > tiktoken_limits::merges)
        refuse(0, "ways to put tokens together", "at most " + std::to_string(tiktoken_limits::merges), "more");
      for (const auto& [left, right] : ways) out.merges.push_back(out.tokens[left] + " " + out.tokens[right]);
    }
  }

  struct seeded_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const {
      return static_cast<std::size_t>(hash_bytes(bytes, hash_seed()));
    }
  };

  std::string path_;
  std::vector<std::string> tokens_;  ///< bytes, by rank
  std::unordered_map<std::string, std::uint32_t, seeded_hash, std::equal_to<>> ranks_;
};
/// Reads the vocabulary of a list of tiktoken: a token in base64 and its rank in each line.
/// @param path that errors name  @throws file_error
inline vocabulary vocabulary_from_tiktoken(std::string_view text, std::string path) {
  return tiktoken_reader(text, std::move(path)).result();
}

/// Reads a vocabulary from a file with such a list. @throws file_error
inline vocabulary vocabulary_from_tiktoken_file(const std::filesystem::path& path) {
  const mapped_file file(path);
  if (file.size() > tiktoken_limits::file_bytes)
    throw file_error(file.path(), std::nullopt, "too large for a list of ranks",
                     "at most " + std::to_string(tiktoken_limits::file_bytes) + " bytes", std::to_string(file.size()));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return vocabulary_from_tiktoken(text, file.path());
}

}  // namespace intaglio::io
