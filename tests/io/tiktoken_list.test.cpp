// SPDX-License-Identifier: MIT
#include "intaglio/io/tiktoken_list.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "intaglio/io/tokenizer.hpp"
#include "vocabularies.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

static_assert(io::is_tiktoken_list("IQ== 0\nIg== 1\n") && io::is_tiktoken_list("IQ== 0\n"));
static_assert(!io::is_tiktoken_list("") && !io::is_tiktoken_list("IQ== 0") && !io::is_tiktoken_list("IQ==\n") &&
              !io::is_tiktoken_list(" 0\n") && !io::is_tiktoken_list("IQ== x\n") &&
              !io::is_tiktoken_list("\x0A\x0E\x0A\x05<unk>\x15\n"));

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}
std::string refusal(const std::string& list) {
  try {
    io::vocabulary_from_tiktoken(list, "tokenizer.model");
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("tiktoken_list: base64 as RFC 4648 has it, nothing else") {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xFF\xFE\xFD"})
    CHECK(io::decode_base64(base64(bytes)) == bytes);
  CHECK(io::decode_base64("Zm9vYg==") == "foob");
  for (const std::string text : {"Zg", "Zg=", "Zg===", "=Zg=", "Zh==", "Zm9=", "Z*==", "Zg==Zg==", "===="})
    CHECK_FALSE(io::decode_base64(text));
}

TEST_CASE("tiktoken_list: Llama 3's list gives the vocabulary of its GGUF, merge by merge") {
  const io::vocabulary& expected = production_vocabulary("llama-bpe");
  std::string list;
  for (std::size_t i = 0; i < io::tiktoken_limits::ranks; ++i)
    list += base64(*io::from_byte_alphabet(expected.tokens[i])) + " " + std::to_string(i) + "\n";
  const io::vocabulary found = io::vocabulary_from_tiktoken(list, "tokenizer.model");
  CHECK(found.tokens == expected.tokens);
  CHECK(found.merges == expected.merges);
  CHECK((found.bos_id == 128000 && found.eos_id == 128001 && found.eot_id == 128009 && found.add_bos == true &&
         found.source == "tokenizer.model"));
  CHECK(found.token_types[127'999] == 1);
  CHECK(found.token_types[128'000] == 3);
  // The goldens of tiktoken itself: tokenizer.test.cpp asks them all of the same vocabulary.
  const io::tokenizer words(found, 128'256);
  CHECK(words.encode("Hello, world!") == io::tokenizer(expected, 128'256).encode("Hello, world!"));
  CHECK(words.encode("<|eot_id|>", {.parse_special = true}) == std::vector<std::int32_t>{128009});
  CHECK_THAT(refusal(list + "IQ== 128000\n"),
             ContainsSubstring("line 128001: token: expected one that was not there before"));
}

TEST_CASE("tiktoken_list: GLM-4's list has no special tokens") {
  std::string list;
  for (std::size_t i = 0; i < io::tiktoken_limits::glm4_ranks; ++i) {
    std::string token(1, static_cast<char>(i % 256));
    for (std::size_t rest = i / 256; rest != 0; rest = (rest - 1) / 26)
      token += static_cast<char>('a' + (rest - 1) % 26);
    list += base64(token) + " " + std::to_string(i) + "\n";
  }
  const io::vocabulary found = io::vocabulary_from_tiktoken(list, "tokenizer.model");
  CHECK((found.tokens.size() == 151'329 && found.token_types.back() == 1 && !found.bos_id && !found.eos_id));
  CHECK((found.pre_tokenizer == "chatglm-bpe" && found.add_bos == false && found.ignore_merges == false));
  CHECK_THAT(refusal(list + "//// 151329\n"), ContainsSubstring("line 151330: expected no more than 151329 lines"));
}

TEST_CASE("tiktoken_list: what is no such list is refused by its line") {
  CHECK_THAT(refusal("IQ== 0\nIg==\n"),
             ContainsSubstring("offset 0x7: line 2: expected a token in base64, a blank and its rank, found 'Ig=='"));
  CHECK_THAT(refusal("IQ== 1\n"),
             ContainsSubstring("line 1: rank: expected 0, as the lines before it count, found '1'"));
  CHECK_THAT(refusal("IQ== 0x\n"), ContainsSubstring("line 1: rank"));
  CHECK_THAT(refusal("IQ== 0\n\n"), ContainsSubstring("line 2"));
  CHECK_THAT(refusal("I! 0\n"), ContainsSubstring("line 1: token: expected base64 of 1 to 128 bytes, found 'I!'"));
  CHECK_THAT(refusal(" 0\n"), ContainsSubstring("line 1: token"));
  CHECK_THAT(refusal(base64(std::string(129, 'a')) + " 0\n"), ContainsSubstring("line 1: token"));
  CHECK_THAT(refusal("IQ== 0\nIQ== 1\n"),
             ContainsSubstring("line 2: token: expected one that was not there before, found that of line 1"));
  CHECK_THAT(refusal("IQ== 0\nIg== 1\n"), ContainsSubstring("ranks of the list: expected 128000 as Llama 3 has"));
  CHECK_THAT(refusal(""), ContainsSubstring("found 0"));
}
