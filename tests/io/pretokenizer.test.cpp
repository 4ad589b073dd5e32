// SPDX-License-Identifier: MIT
#include "intaglio/io/pretokenizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

using namespace intaglio::io;
using pieces = std::vector<std::string>;

namespace {

pieces split(pretokenizer kind, std::string_view text) {
  pieces out;
  split_pieces(kind, text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

constexpr std::size_t count(pretokenizer kind, std::string_view text) {
  std::size_t out = 0;
  split_pieces(kind, text, [&](std::string_view) { ++out; });
  return out;
}

}  // namespace

static_assert(count(pretokenizer::llama_bpe, "Hello world") == 2);
static_assert(count(pretokenizer::gpt2, "") == 0);
static_assert(find_pretokenizer("llama-bpe") == pretokenizer::llama_bpe && !find_pretokenizer("llama-bp"));

TEST_CASE("Llama 3 cuts as its expression does") {
  const auto kind = pretokenizer::llama_bpe;
  CHECK(split(kind, "I'LL don't 's") == pieces{"I", "'LL", " don", "'t", " '", "s"});
  CHECK(split(kind,
              "'\xC5\xBF"
              "abc") == pieces{"'\xC5\xBF", "abc"});  // LONG S is an s when case is ignored
  CHECK(split(kind, "12345 6") == pieces{"123", "45", " ", "6"});
  CHECK(split(kind, "a  \n \n  b") == pieces{"a", "  \n \n", " ", " b"});
  CHECK(split(kind, "x   ") == pieces{"x", "   "});
  CHECK(split(kind, "\tfoo _bar?!\r\n\n") == pieces{"\tfoo", " _", "bar", "?!\r\n\n"});
  CHECK(split(kind, "\nfoo") == pieces{"\n", "foo"});
  CHECK(split(kind,
              "\xFF\xFE"
              "a") == pieces{"\xFF\xFE", "a"});
  CHECK(split(kind, "e\xCC\x81") == pieces{"e", "\xCC\x81"});  // a combining mark is no letter
}

TEST_CASE("the other pre-tokenizers") {
  CHECK(split(pretokenizer::qwen2, "123 a") == pieces{"1", "2", "3", " a"});
  CHECK(split(pretokenizer::gpt2, "I'LL don't 1234  x\n\ny ") ==
        pieces{"I", "'", "LL", " don", "'t", " 1234", " ", " x", "\n", "\n", "y", " "});
  CHECK(split(pretokenizer::starcoder, "a 12 b") == pieces{"a", " ", "1", "2", " b"});
  CHECK(split(pretokenizer::unnamed, "Hi, 12345!") == pieces{"Hi", ",", " ", "123", "45", "!"});
}

TEST_CASE("pieces are never empty and join to the text, whatever the bytes") {
  std::mt19937 random(7);
  const std::vector<std::string> parts{"'s",
                                       "'",
                                       "LL",
                                       " ",
                                       "\n",
                                       "\r",
                                       "\t",
                                       "1",
                                       "22",
                                       "a",
                                       "\xC3\xA9",
                                       "\xE2\x81",
                                       "\xFF",
                                       "\xF0\x9F\x9A\x80",
                                       "!",
                                       "$",
                                       std::string(1, '\0')};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) text += parts[random() % parts.size()];
    for (const auto kind : {pretokenizer::llama_bpe, pretokenizer::qwen2, pretokenizer::gpt2, pretokenizer::starcoder,
                            pretokenizer::unnamed}) {
      std::string joined;
      for (const auto& piece : split(kind, text)) {
        REQUIRE_FALSE(piece.empty());
        joined += piece;
      }
      REQUIRE(joined == text);
    }
  }
}

TEST_CASE("digits are cut by three wherever a run of numbers has them") {
  CHECK(split(pretokenizer::unnamed, "12345") == pieces{"123", "45"});
  CHECK(split(pretokenizer::unnamed,
              "\xC2\xB2"
              "1234") == pieces{"\xC2\xB2", "123", "4"});  // SUPERSCRIPT TWO is a number, but no digit
  CHECK(split(pretokenizer::unnamed,
              "12\xC2\xB2"
              "345") == pieces{"12\xC2\xB2", "345"});
}
