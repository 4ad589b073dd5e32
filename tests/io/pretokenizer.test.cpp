// SPDX-License-Identifier: MIT
#include "intaglio/io/pretokenizer.hpp"

#include <algorithm>

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "intaglio/io/pretokenizer_names.hpp"

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
static_assert(find_pretokenizer("llama-bpe")->kind == pretokenizer::llama_bpe && !find_pretokenizer("llama-bp"));

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

// What is expected here is what tokenizers 0.23 gives for the published expressions.
TEST_CASE("o200k cuts words where upper case follows lower case, and keeps contractions") {
  const auto kind = pretokenizer::gpt4o;
  CHECK(split(kind, "HTTPServer helloWorld McDonald's") == pieces{"HTTPServer", " hello", "World", " Mc", "Donald's"});
  CHECK(split(kind, "1234567 a/b\n//\n") == pieces{"123", "456", "7", " a", "/b", "\n", "//\n"});
  CHECK(split(kind, "e\xCC\x81t\xC3\xA9 \xC3\x89TE'LL") == pieces{"e\xCC\x81t\xC3\xA9", " \xC3\x89TE'LL"});
  CHECK(split(kind,
              "AB\xE4\xB8\x80"
              "C") == pieces{"AB\xE4\xB8\x80", "C"});
  CHECK(split(pretokenizer::tekken, "helloWorld's 12") == pieces{"hello", "World", "'s", " ", "1", "2"});
}

TEST_CASE("Qwen 3.5, DeepSeek and their relatives") {
  CHECK(split(pretokenizer::qwen35, "e\xCC\x81t 12") == pieces{"e\xCC\x81t", " ", "1", "2"});
  CHECK(split(pretokenizer::deepseek_v3, "x=foo(12345, \xE4\xB8\xAD\xE6\x96\x87!)\n") ==
        pieces{"x", "=foo", "(", "123", "45", ",", " ", "\xE4\xB8\xAD\xE6\x96\x87", "!)\n"});
  CHECK(split(pretokenizer::deepseek_coder, "if x1 == 23:\n") == pieces{"if", " x", "1", " == ", "2", "3", ":", "\n"});
  const auto llm = pretokenizer::deepseek_llm;
  CHECK(split(llm, "Hello world  \n") == pieces{"Hello", " world", "  ", "\n"});
  CHECK(split(llm, "x = 12, \u00E93") == pieces{"x", " =", " ", "1", "2", ",", " \u00E9", "3"});
  CHECK(split(llm, "\u4E2D\u6587\u3002 \u10D0b's") == pieces{"\u4E2D\u6587", "\u3002", " ", "\u10D0", "b", "'", "s"});
  CHECK(split(llm, "a\u3000\u3000 1   ") == pieces{"a", "\u3000\u3000", " ", "1", "   "});
  const auto kimi = pretokenizer::kimi_k2;
  CHECK(split(kimi, "AB\u4E00\u4E8CC's 1234") == pieces{"AB", "\u4E00\u4E8C", "C's", " ", "123", "4"});
  CHECK(split(kimi, "helloWorld \u4E00//\n/") == pieces{"hello", "World", " ", "\u4E00", "//\n", "/"});
  CHECK(split(kimi, "\u3042\u4E00\u3044 \uAC00") == pieces{"\u3042", "\u4E00", "\u3044", " \uAC00"});
  CHECK(split(pretokenizer::seed_coder, "a;\nb") == pieces{"a", ";", "\n", "b"});
  CHECK(split(pretokenizer::minicpm5, "a  1234") == pieces{"a", "  ", "123", "4"});
  CHECK(split(pretokenizer::ufakzeka, "Ali'nin") == pieces{"Ali", "'nin"});
  CHECK(split(pretokenizer::falcon, "a`b 1234") == pieces{"a", "`", "b", " ", "123", "4"});
}

// What is expected here is what tokenizers gives for Trinity's tokenizer.json (tokenizers.js, tests/models/afmoe).
TEST_CASE("AFMoE cuts digits by three from the right, and runs of scripts") {
  const auto kind = pretokenizer::afmoe;
  CHECK(split(kind, "12") == pieces{"12"});
  CHECK(split(kind, "1234") == pieces{"1", "234"});
  CHECK(split(kind, "12345") == pieces{"12", "345"});
  CHECK(split(kind, "123456") == pieces{"123", "456"});
  CHECK(split(kind, "1234567890") == pieces{"1", "234", "567", "890"});
  CHECK(split(kind, "1abc 2def") == pieces{"1", "abc", " ", "2", "def"});
  CHECK(split(kind, "x 1234.5678") == pieces{"x", " ", "1", "234", ".", "5", "678"});
  CHECK(split(kind, "\u0661\u0662\u0663\u0664") == pieces{"\u0661", "\u0662\u0663\u0664"});
  CHECK(split(kind,
              "12\u00B2"
              "345") == pieces{"12", "\u00B2", "345"});  // SUPERSCRIPT TWO is no decimal digit
  for (const std::size_t digits : {509u, 510u, 511u, 1020u, 1021u}) {
    const pieces found = split(kind, std::string(digits, '7') + "a");
    REQUIRE(found.size() == (digits + 2) / 3 + 1);
    CHECK(found.front().size() == (digits % 3 == 0 ? 3 : digits % 3));
    CHECK(std::all_of(found.begin() + 1, found.end() - 1, [](const auto& each) { return each.size() == 3; }));
  }
  CHECK(split(kind, "\u4E2D\u6587\u3072\u30AB\uFF76") == pieces{"\u4E2D\u6587\u3072\u30AB\uFF76"});
  CHECK(split(kind, "\u0E44\u0E17\u0E22\u0EA5\u0EB2\u1781\u17D2") ==
        pieces{"\u0E44\u0E17\u0E22", "\u0EA5\u0EB2", "\u1781\u17D2"});
  CHECK(split(kind, "\u1019\u103C\uD55C\uAE00") == pieces{"\u1019\u103C", "\uD55C\uAE00"});
  CHECK(split(kind, "a \u4E2D b") == pieces{"a", " ", "\u4E2D", " b"});
  CHECK(split(kind, "!Hello #World") == pieces{"!Hello", " #", "World"});
  CHECK(split(kind, " $$$\n") == pieces{" $$$\n"});
  CHECK(split(kind, "x \t\r\n\ty") == pieces{"x", " \t\r\n", "\ty"});
  CHECK(split(kind, "a\tb  c") == pieces{"a", "\tb", " ", " c"});
}

TEST_CASE("decimal digits are numbers in groups of ten, in order") {
  char32_t before = 0;
  for (const letter_range& each : decimal_digits) {
    CHECK((each.first > before && (each.last - each.first + 1) % 10 == 0));
    for (char32_t value = each.first; value <= each.last; ++value) CHECK(class_of(value) == unicode_class::number);
    before = each.last;
  }
  CHECK((is_decimal_digit(U'7') && is_decimal_digit(0xFF19) && !is_decimal_digit(0xB2) && !is_decimal_digit(0x2160)));
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
    for (std::size_t kind = 0; kind < pretokenizer_stages.size(); ++kind) {
      std::string joined;
      for (const auto& piece : split(static_cast<pretokenizer>(kind), text)) {
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
