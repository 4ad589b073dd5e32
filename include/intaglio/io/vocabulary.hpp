// SPDX-License-Identifier: MIT
// The tokenizer data of a model file, not interpreted: loaders fill this struct, io::tokenizer validates it. Names
// follow the tokenizer.ggml.* keys of GGUF.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::io {

/// Kind of a token, with the numbers of SentencePiece's ModelProto and GGUF's tokenizer.ggml.token_type.
enum class token_type : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// How the text of an added token is found (tokenizers' AddedToken).
struct added_token {
  std::int64_t id = 0;
  bool single_word = false;             ///< only where no letter, digit or underscore touches it
  bool lstrip = false, rstrip = false;  ///< includes the white space in front of it, or after it
  bool normalized = false;              ///< searched for in normalised text, after the others

  bool plain() const { return !single_word && !lstrip && !rstrip && !normalized; }
  friend bool operator==(const added_token&, const added_token&) = default;
};

/// The byte of a byte token's text: exactly <0xHH> with capital digits; absent otherwise.
constexpr std::optional<std::uint8_t> byte_token_value(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  const int high = digit(text[3]), low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

/// How a Hugging Face file of a Unigram vocabulary changes white space before tokens are searched for.
struct unigram_spaces {
  bool merged = false;        ///< runs of spaces become one
  bool end_stripped = false;  ///< white space at the end is removed
  bool split = false;         ///< white space is removed, and each text between has a space in front
  bool words = false;         ///< a space begins a word, and tokens do not cross from word to word
  friend bool operator==(const unigram_spaces&, const unigram_spaces&) = default;
};

/// A key of this library in GGUF files: ids that end a generation, where there are more than llama.cpp has keys for.
inline constexpr std::string_view end_ids_key = "intaglio.end_of_generation_ids";

/// The tokenizer part of a model file, not yet validated. An absent optional means that the file does not state the
/// fact.
struct vocabulary {
  std::string source;  ///< file that the errors name
  std::string
      architecture;   ///< general.architecture, or model_type of a config.json: "bitnet-b1.58", "llama", "gemma3", ...
  std::string model;  ///< tokenizer.ggml.model: "gpt2" is byte-level BPE, "llama" is SentencePiece-style BPE, "bert"
                      ///< is WordPiece, whose tokens that begin a word have U+2581 in front, "t5" is Unigram
  std::optional<std::string> pre_tokenizer;  ///< tokenizer.ggml.pre

  std::vector<std::string> tokens;        ///< byte-level BPE: in the printable byte alphabet, as in the file
  std::vector<float> scores;              ///< empty, or one for each token (needed by "llama" without merges)
  std::vector<std::int32_t> token_types;  ///< empty (all normal), or one for each token: numbers of io::token_type
  std::vector<std::string> merges;  ///< "left right", the strongest first; the first space from position 1 separates

  std::optional<std::int64_t> bos_id, eos_id, eot_id, eom_id, unknown_id, padding_id;
  std::vector<added_token>
      added;  ///< tokens that a Hugging Face file adds to its model, where it states more than a text
  std::vector<std::int64_t> end_ids;  ///< other ends of a generation in the files: eos_token_id of a config.json
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
  /// Only Hugging Face files state this: a space is put in front unless one is there. true: in front of the whole text
  /// only; false: in front of each stretch between special tokens.
  std::optional<bool> space_prefix_once;
  std::optional<bool> ignore_merges;  ///< only Hugging Face files state it; otherwise it follows from the pre-tokenizer
  bool nfc = false;                   ///< text is brought to Unicode's normalization form C first
  /// WordPiece: text becomes lower case and loses its accents, unless these say otherwise.
  std::optional<bool> lowercase, strip_accents;
  std::string charsmap;                      ///< Unigram: tokenizer.ggml.precompiled_charsmap (io::charsmap)
  unigram_spaces spaces;                     ///< Unigram
  bool doubles_separator = false;            ///< two EOS are between two texts that an encoder reads together
  std::optional<std::string> chat_template;  ///< tokenizer.chat_template: Jinja text, recognised and never executed
  std::vector<std::string> warnings{};       ///< harmless oddities that the reader found
};

}  // namespace intaglio::io
