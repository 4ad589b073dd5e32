// SPDX-License-Identifier: MIT
// Vocabularies for tests: from the shared material, and a small one that tests break on purpose.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "intaglio/io/byte_level_bpe.hpp"
#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline nlohmann::json shared_json(std::string_view relative) {
  return nlohmann::json::parse(file_text(shared(relative)));
}

/// The vocabulary of a GGUF file, as the library reads it.
inline intaglio::io::vocabulary vocabulary_of(const std::filesystem::path& path) {
  return intaglio::io::gguf_vocabulary(intaglio::io::gguf::open(path));
}

/// A production vocabulary of the shared material: "llama-bpe" or "llama-spm".
inline const intaglio::io::vocabulary& production_vocabulary(std::string_view name) {
  static std::map<std::string, intaglio::io::vocabulary, std::less<>> read;
  if (const auto known = read.find(name); known != read.end()) return known->second;
  const std::string file = "ggml-vocab-" + std::string(name) + ".gguf";
  const auto packed = shared("conformance/vocab/" + file + ".xz");
  const temporary_folder folder;  // parts of this program run side by side
  const auto plain = folder / file;
  REQUIRE(std::system(("xz -dc '" + packed.string() + "' > '" + plain.string() + "'").c_str()) == 0);
  auto vocabulary = vocabulary_of(plain);
  return read.emplace(name, std::move(vocabulary)).first->second;
}

/// A sound byte-level vocabulary: 256 bytes, "he", "ll", "llo", "hello", " w"; then BOS, EOS, EOT as control tokens.
inline intaglio::io::vocabulary small_byte_level() {
  intaglio::io::vocabulary out;
  out.source = "small.gguf", out.architecture = "llama", out.model = "gpt2", out.pre_tokenizer = "llama-bpe";
  for (const char32_t c : intaglio::io::byte_alphabet) intaglio::io::append_utf8(out.tokens.emplace_back(), c);
  for (const char* text :
       {"he", "ll", "llo", "hello", "\xC4\xA0w", "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"})
    out.tokens.push_back(text);
  out.merges = {"h e", "l l", "ll o", "he llo", "\xC4\xA0 w"};
  out.token_types.assign(out.tokens.size(), 1);
  for (std::size_t i = 261; i < out.tokens.size(); ++i) out.token_types[i] = 3;
  out.bos_id = 261, out.eos_id = 262;
  return out;
}

/// A sound SentencePiece vocabulary: <unk> <s> </s>, bytes, and pieces by score.
inline intaglio::io::vocabulary small_sentencepiece() {
  intaglio::io::vocabulary out;
  out.source = "small.gguf", out.architecture = "llama", out.model = "llama", out.pre_tokenizer = "default";
  const auto add = [&](std::string text, int type, float score) {
    out.tokens.push_back(std::move(text)), out.token_types.push_back(type), out.scores.push_back(score);
  };
  add("<unk>", 2, 0), add("<s>", 3, 0), add("</s>", 3, 0);
  for (int byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    add(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">", 6, 0);
  }
  float score = 0;
  for (const char* text :
       {"\xE2\x96\x81h", "el", "lo", "\xE2\x96\x81hel", "\xE2\x96\x81hello", "\xE2\x96\x81", "h", "e", "l", "o"})
    add(text, 1, score -= 1);
  out.bos_id = 1, out.eos_id = 2, out.unknown_id = 0;
  return out;
}
