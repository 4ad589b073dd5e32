// SPDX-License-Identifier: MIT
#include "intaglio/io/unicode.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace intaglio::io;

static_assert(class_of(U'a') == unicode_class::lower && class_of(U'A') == unicode_class::upper &&
              class_of(U'\u01C5') == unicode_class::upper && class_of(U'\u00AA') == unicode_class::caseless &&
              class_of(U'\u4E00') == unicode_class::caseless);
static_assert(class_of(U'7') == unicode_class::number && class_of(U'\u00B2') == unicode_class::number &&
              class_of(U'\u2167') == unicode_class::number);
static_assert(class_of(U' ') == unicode_class::space && class_of(U'\u0085') == unicode_class::space &&
              class_of(U'\u3000') == unicode_class::space);
static_assert(class_of(U'!') == unicode_class::punctuation && class_of(U'_') == unicode_class::punctuation &&
              class_of(U'$') == unicode_class::symbol);
static_assert(class_of(U'\u0301') == unicode_class::mark && class_of(U'\u200B') == unicode_class::other &&
              class_of(U'\u001C') == unicode_class::other);
static_assert(class_of(U'\U0010FFFF') == unicode_class::other && class_of(U'\0') == unicode_class::other);
static_assert(class_of(U'\U00020000') == unicode_class::caseless && class_of(U'\U0001F680') == unicode_class::symbol);

TEST_CASE("the class table is one ascending list from U+0000 in which neighbours differ") {
  REQUIRE((unicode_class_runs[0] >> 4) == 0);
  for (std::size_t i = 1; i < std::size(unicode_class_runs); ++i) {
    REQUIRE((unicode_class_runs[i] >> 4) > (unicode_class_runs[i - 1] >> 4));
    REQUIRE((unicode_class_runs[i] & 15) != (unicode_class_runs[i - 1] & 15));
    REQUIRE((unicode_class_runs[i] & 15) <= 8);
  }
  std::size_t letters = 0;
  for (char32_t c = 0; c < 0x110000; ++c) letters += is_letter(class_of(c));
  CHECK(letters > 140'000);  // Unicode 15 has 136,726 letters; later versions have more
}

TEST_CASE("every code point survives UTF-8, and nothing else decodes") {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const auto back = decode_utf8(text, 0);
    REQUIRE((back.valid && back.value == c && back.bytes == text.size()));
    REQUIRE(complete_utf8(text) == text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      REQUIRE_FALSE(decode_utf8(std::string_view(text).substr(0, cut), 0).valid);
      REQUIRE(complete_utf8("ab" + text.substr(0, cut)) == 2);
    }
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
                          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    CHECK_FALSE(is_utf8(bad));
    CHECK_FALSE(decode_utf8(bad, 0).valid);
    CHECK(decode_utf8(bad, 0).bytes == 1);
    CHECK(complete_utf8(bad) == std::string_view(bad).size());
  }
}

TEST_CASE("what is not UTF-8 becomes one U+FFFD for each longest start of a sequence") {
  const auto replaced = [](std::string_view text) {
    std::string out;
    append_replacing_invalid(out, text);
    return out;
  };
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(replaced("a\xE2\x82z") == "a" + mark + "z");
  CHECK(replaced("\xF0\x9F\xA6") == mark);
  CHECK(replaced("\xED\xA0\x80") == mark + mark + mark);
  CHECK(replaced("\xC0\x80") == mark + mark);
  CHECK(replaced("\xFF\xC3\xA9\xC3") == mark + "\xC3\xA9" + mark);
}
