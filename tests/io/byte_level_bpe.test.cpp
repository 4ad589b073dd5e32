// SPDX-License-Identifier: MIT
#include "intaglio/io/byte_level_bpe.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "io/vocabularies.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace intaglio::io;
using ids = std::vector<std::int32_t>;

namespace {

static_assert(byte_alphabet['A'] == U'A' && byte_alphabet['~'] == U'~' && byte_alphabet[0xFF] == U'\u00FF');
static_assert(byte_alphabet[0] == U'\u0100' && byte_alphabet[' '] == U'\u0120' && byte_alphabet['\n'] == U'\u010A' &&
              byte_alphabet[0x7F] == U'\u0121');
static_assert(byte_alphabet[0xAD] == U'\u0143', "the soft hyphen is the last byte without a form of its own");

/// The encoder with what it borrows: texts of all tokens, and those that text may become.
struct encoder {
  token_texts texts;
  token_index ordinary;
  byte_level_bpe model;

  encoder(const vocabulary& file, pretokenizer kind, bool ignore_merges)
      : texts(texts_of(file)), ordinary(index_of(file, texts)), model(file, kind, ignore_merges, texts, ordinary) {}
  ids operator()(std::string_view text) const {
    merge_scratch work;
    ids out;
    model.encode(text, texts, ordinary, work, out);
    return out;
  }
  static token_texts texts_of(const vocabulary& file) {
    token_texts out;
    for (const auto& token : file.tokens) out.add(from_byte_alphabet(token).value_or(token));
    return out;
  }
  static token_index index_of(const vocabulary& file, const token_texts& texts) {
    token_index out{file.tokens.size()};
    for (std::size_t i = 0; i < file.tokens.size(); ++i)
      if (file.token_types[i] == 1) out.insert(texts, static_cast<std::int32_t>(i));
    return out;
  }
};

}  // namespace

TEST_CASE("byte_level_bpe: the alphabet has a visible character for each byte, and back") {
  std::set<char32_t> characters;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char32_t character = byte_alphabet[byte];
    CHECK(characters.insert(character).second);
    CHECK(class_of(character) != unicode_class::space);
    std::string text;
    append_utf8(text, character);
    CHECK(from_byte_alphabet(text) == std::string(1, static_cast<char>(byte)));
  }
  CHECK(from_byte_alphabet("") == "");
  CHECK(from_byte_alphabet("\xC4\xA0"
                           "a\xC3\xA9") == " a\xE9");
  // A space, a soft hyphen, a character after the alphabet, and what is not UTF-8.
  for (const char* text : {" ", "a b", "\xC2\xAD", "\xC5\x84", "\xE2\x96\x81", "\xFF", "a\xC4"}) {
    CAPTURE(text);
    CHECK_FALSE(from_byte_alphabet(text));
  }
}

TEST_CASE("byte_level_bpe: a merge has two sides, which part at the first space that is not the first byte") {
  using sides = std::pair<std::string_view, std::string_view>;
  CHECK(split_merge("he llo") == sides{"he", "llo"});
  CHECK(split_merge("a b c") == sides{"a", "b c"});
  CHECK(split_merge("  b") == sides{" ", "b"});
  for (const char* none : {"", " ", "a", "a ", " a"}) {
    CAPTURE(none);
    CHECK_FALSE(split_merge(none));
  }
}

TEST_CASE("byte_level_bpe: merges in the order of the file, each of tokens that are there") {
  vocabulary file;
  file.source = "file";
  file.tokens = {"a", "b", "ab", "abb"};
  const auto token_of = [&](std::string_view text) {
    const auto at = std::find(file.tokens.begin(), file.tokens.end(), text);
    return at == file.tokens.end() ? -1 : static_cast<std::int32_t>(at - file.tokens.begin());
  };
  file.merges = {"a b", "ab b"};
  const merge_index merges = read_merges(file, token_of);
  CHECK((merges.find(0, 1).rank == 0 && merges.find(0, 1).result == 2));
  CHECK((merges.find(2, 1).rank == 1 && merges.find(2, 1).result == 3));
  CHECK(merges.find(1, 0).result == -1);
  const auto refused = [&](const char* merge) {
    file.merges = {"a b", merge};
    try {
      read_merges(file, token_of);
    } catch (const file_error& problem) { return std::string(problem.what()); }
    return std::string("accepted");
  };
  CHECK(refused("ab b") == "accepted");
  CHECK(refused("ab") == "file: tokenizer.ggml.merges[1]: expected two texts with a space between, found 'ab'");
  CHECK(refused("a x") == "file: tokenizer.ggml.merges[1]: expected two tokens of the vocabulary, found 'a x'");
  CHECK(refused("x\x1b a") ==
        "file: tokenizer.ggml.merges[1]: expected two tokens of the vocabulary, found 'x\\x1b a'");
  CHECK(refused("b a") ==
        "file: tokenizer.ggml.merges[1]: expected two tokens that make a token of the vocabulary, found 'b a'");
  CHECK(refused("a b") == "file: tokenizer.ggml.merges[1]: expected each pair once, found 'a b'");
}

TEST_CASE("byte_level_bpe: pieces become whole tokens at once, or by merges alone") {
  auto file = small_byte_level();
  const encoder at_once(file, pretokenizer::llama_bpe, true), merged(file, pretokenizer::llama_bpe, false);
  CHECK(at_once("hello wo") == ids{259, 260, 'o'});
  CHECK(merged("hello wo") == ids{259, 260, 'o'});
  // A token that no merges lead to.
  file.merges = {"h e", "l l", "ll o"};
  CHECK(encoder(file, pretokenizer::llama_bpe, true)("hello") == ids{259});
  CHECK(encoder(file, pretokenizer::llama_bpe, false)("hello") == ids{256, 258});
  CHECK(at_once.model.kind() == pretokenizer::llama_bpe);
  // Control tokens are no part of it, and every byte has a token.
  CHECK(merged("<|eot_id|>").size() == 10);
  std::string all;
  ids each;
  for (int byte = 255; byte >= 0; --byte) all.push_back(static_cast<char>(byte)), each.push_back(byte);
  CHECK(merged(all) == each);
  CHECK(merged("").empty());
}

TEST_CASE("byte_level_bpe: a byte without a token is counted, and lost where no other token has it") {
  auto file = small_byte_level();
  file.token_types[0xE9] = 3;  // there, but not for text
  const encoder model(file, pretokenizer::llama_bpe, true);
  CHECK(model.model.missing_bytes() == 1);
  CHECK(model("a\xE9z") == std::vector<std::int32_t>{'a', 'z'});
  CHECK(model("\xE9").empty());
}
