// SPDX-License-Identifier: MIT
#include "../../examples/serve/text_language.hpp"

#include <catch2/catch_test_macros.hpp>

#include <random>
#include <regex>
#include <stdexcept>

#include "texts.hpp"

using namespace intaglio::serve;

namespace {
text_language language(const char* pattern) {
  language_budget budget;
  return text_language::of_pattern(pattern, budget);
}
}  // namespace

TEST_CASE("patterns hold what ECMAScript's do") {
  std::mt19937 random(3);
  for (const char* const pattern : {"a",
                                    "^a",
                                    "a$",
                                    "^a$",
                                    "^(a|b)*c$",
                                    "ab|^b",
                                    "(^a|b$)",
                                    "^a{2,3}$",
                                    "^a{2,}b?$",
                                    "^[a-c]+$",
                                    "[^ab]",
                                    "^[^ab]*$",
                                    "^$",
                                    "",
                                    "^(?:ab)+c{0}$",
                                    "a.c",
                                    "^\\d+\\.\\d*$",
                                    "^\\w+$",
                                    "\\s",
                                    "^[\\w-]+$",
                                    "^a*?b+?$",
                                    "^(a(b(c)?)?)?$",
                                    "^[]$",
                                    "^[^]*$",
                                    "a|b|",
                                    "^(?!a)b*",
                                    "^(?=.*b)[abc]+$",
                                    "^(?!.*bb)[abc]*$",
                                    "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$",
                                    "^a(?=b)[bc]*$",
                                    "a(?=b)",
                                    "^(?:a|(?=.{2}$)[bc]*)$",
                                    "^(?=a(?=.c))[abc]*$",
                                    "^a(?=b|c$)",
                                    "(?=b)(?=.c)..",
                                    "^(?!^[-+.]*$)[+-]?0*(?:\\d{0,3}|(?=[\\d.]{1,6}0*$)\\d{0,3}\\.\\d{0,2}0*$)"}) {
    INFO(pattern);
    const text_language own = language(pattern);
    const bool unknown = std::string_view(pattern).find("[]") != std::string_view::npos ||
                         std::string_view(pattern).find("[^]") != std::string_view::npos;
    const std::regex other(unknown ? "x^" : pattern, std::regex::ECMAScript);
    int wrong = 0;
    for (int i = 0; i < 400; ++i) {
      std::string text;
      for (std::size_t size = random() % 6; size-- != 0;) text += "abc1. -+_\n"[random() % (i % 2 == 0 ? 3 : 10)];
      const bool expected = unknown ? std::string_view(pattern) == "^[^]*$" : std::regex_search(text, other);
      wrong += own.holds(text) != expected;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("patterns of other characters than ASCII's, and what is written of them") {
  const text_language greek = language("^[\\u03b1-\\u03c9\\u{1F600}é]+$");
  CHECK((greek.holds("αβω") && greek.holds("é😀") && !greek.holds("a") && !greek.holds("Α") && !greek.holds("")));
  CHECK(language("^.{2}$").holds("é😀"));
  CHECK(language("^\\ud83d\\ude00$").holds("😀"));
  const auto form =
      form_of("{\"type\":\"string\",\"pattern\":\"^[\\\"\\\\\\\\\\\\n\\\\u0001\\\\u0800-\\\\uffffz]{1,3}$\"}");
  for (const char* const good :
       {R"("\"")", R"("\\z")", R"("\n")", R"("\u0001")", "\"\xE0\xA0\x80\"", "\"\xEF\xBF\xBF\"", "\"\xEE\x80\x80z\""})
    CHECK(fits(form, good));
  for (const char* const bad : {R"("")", R"("""")", R"("a")", "\"\xED\xA0\x80\"", "\"\xDF\xBF\"",
                                "\"\xF0\x90\x80\x80\"", R"("zzzz")", "\"\n\""})
    CHECK_FALSE(fits(form, bad));
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const std::string text = written(form, form->least_bytes() + static_cast<std::uint32_t>(random() % 12), random);
    INFO(text);
    CHECK(json::accept(text));
  }
}

TEST_CASE("patterns that are not regular, or wrong, or too large are refused in a sentence") {
  for (const char* const bad : {"(",       ")",      "[a",     "a**",     "*a",    "(?<=a)b", "a(?!b)", "(a)\\1",
                                "\\bword", "\\p{L}", "a{3,2}", "a{",      "[z-a]", "(?:a",    "\\",     "[\\d-z]",
                                "\\u12",   "a\\",    "(?i)a",  "a{2}{3}", "]",     "}",       "(?!a)b", "^(?!a)b|c"}) {
    INFO(bad);
    CHECK_THROWS_AS(language(bad), std::invalid_argument);
  }
  for (const char* const large : {"a{2001}", "^(a{1000}){1000}$", "(a|b)*a(a|b){12}", "((((a{50}){50}){50}){50})"}) {
    INFO(large);
    CHECK_THROWS_AS(language(large), std::length_error);
  }
}

TEST_CASE("formats hold good texts and no others") {
  language_budget budget;
  budget.left *= 20;
  const auto holds = [&](const char* format, const char* text) {
    return language_of_format(format, budget)->holds(text);
  };
  for (const auto& [format, text] :
       std::vector<std::pair<const char*, const char*>>{{"date", "2024-02-28"},
                                                        {"date", "1999-12-31"},
                                                        {"time", "23:59:59Z"},
                                                        {"time", "00:00:00.5+02:00"},
                                                        {"date-time", "2024-06-30T12:00:00Z"},
                                                        {"uuid", "123e4567-e89b-42d3-a456-426614174000"},
                                                        {"email", "a.b+c@example.org"},
                                                        {"ipv4", "255.0.10.1"},
                                                        {"ipv6", "::1"},
                                                        {"ipv6", "fe80::1"},
                                                        {"uri", "https://example.org:8080/a?b=c#d"},
                                                        {"hostname", "a-b.example"},
                                                        {"duration", "P3D"},
                                                        {"duration", "PT1H30M5S"},
                                                        {"base64", "YWI="},
                                                        {"password", "x"}}) {
    INFO(format << ' ' << text);
    CHECK(holds(format, text));
  }
  for (const auto& [format, text] :
       std::vector<std::pair<const char*, const char*>>{{"date", "2024-02-30"},
                                                        {"date", "2024-13-01"},
                                                        {"date", "24-01-01"},
                                                        {"date", " 2024-01-01"},
                                                        {"time", "24:00:00Z"},
                                                        {"time", "12:00:00"},
                                                        {"date-time", "2024-06-31T12:00:00Z"},
                                                        {"uuid", "123e4567"},
                                                        {"email", "a@b"},
                                                        {"email", "@b.de"},
                                                        {"ipv4", "256.0.0.1"},
                                                        {"ipv4", "1.2.3"},
                                                        {"ipv6", ":::"},
                                                        {"uri", "example.org"},
                                                        {"hostname", "-a"},
                                                        {"duration", "P"},
                                                        {"base64", "YWI"}}) {
    INFO(format << ' ' << text);
    CHECK_FALSE(holds(format, text));
  }
  CHECK_FALSE(language_of_format("phone", budget));
}
