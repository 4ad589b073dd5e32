// SPDX-License-Identifier: MIT
#include "intaglio/io/jinja_text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::io::jinja;

namespace {

std::string shown(const list& of) { return value(of).print(); }
value called(const std::string& text, const std::string& method, std::vector<value> given = {}) {
  return text_method(text, method).call({std::move(given), {}});
}

}  // namespace

TEST_CASE("jinja_text: str.split as Python has it", "[jinja]") {
  CHECK(shown(split(" a  b ", std::nullopt, -1, false)) == "['a', 'b']");
  CHECK(shown(split(" a  b  c ", std::nullopt, 1, false)) == "['a', 'b  c']");
  CHECK(shown(split("a,b,,c", ",", -1, false)) == "['a', 'b', '', 'c']");
  CHECK(shown(split("a,b,c", ",", 1, false)) == "['a', 'b,c']");
  CHECK(shown(split("a,b,c", ",", 1, true)) == "['a,b', 'c']");
  CHECK(shown(split("", ",", -1, false)) == "['']");
  CHECK(shown(split("", std::nullopt, -1, false)) == "[]");
  CHECK_THROWS_AS(split("a", "", -1, false), template_error);
}

TEST_CASE("jinja_text: methods count characters, not bytes", "[jinja]") {
  CHECK(called("\xC3\xA9t\xC3\xA9", "find", {value("t")}).integer() == 1);
  CHECK(called("abab", "count", {value("ab")}).integer() == 2);
  CHECK(called("\xC2\xA0 x\n", "strip").text() == "x");
  CHECK(called("xxaxx", "rstrip", {value("x")}).text() == "xxa");
  CHECK(called("abc", "startswith", {value(list{value("x"), value("ab")})}).truth());
  CHECK(called("a\nb\r\nc\n", "splitlines").print() == "['a', 'b', 'c']");
  CHECK(called("-", "join", {value(list{value("a"), value("b")})}).text() == "a-b");
  CHECK(called("\xC3\x89T\xC3\x89", "lower").text() == "\xC3\xA9t\xC3\xA9");
  CHECK(called("12", "isdigit").truth());
  CHECK_FALSE(called("", "isalpha").truth());
  CHECK(text_method("a", "nothing").is_undefined());
  CHECK_THROWS_AS(called("a", "replace", {value("a")}), template_error);
}

TEST_CASE("jinja_text: slices and formats", "[jinja]") {
  using at = std::vector<std::size_t>;
  const auto number = [](int v) { return value(std::int64_t{v}); };
  CHECK(sliced(3, nullptr, nullptr, nullptr) == at{0, 1, 2});
  CHECK(sliced(3, nullptr, nullptr, number(-1)) == at{2, 1, 0});
  CHECK(sliced(3, number(-9), number(9), number(2)) == at{0, 2});
  CHECK(sliced(0, nullptr, nullptr, number(-1)).empty());
  CHECK_THROWS_AS(sliced(3, nullptr, nullptr, number(0)), template_error);
  CHECK(formatted("%5.1f|%-3s|%x%%", {value(2.25), value("a"), value(std::int64_t{255})}) == "  2.2|a  |ff%");
  CHECK_THROWS_AS(formatted("%s", {}), template_error);
  CHECK_THROWS_AS(formatted("x", {value("a")}), template_error);
  CHECK_THROWS_AS(formatted("%n", {value("a")}), template_error);
}

TEST_CASE("jinja_text: str.format takes fields in turn, numbered and named", "[jinja]") {
  const arguments given{{value("a"), value(2.0), value(list{value("b")})}, {{"who", value("me")}}};
  const auto text = [&](const std::string& form) { return filled(form, given); };
  CHECK(text("{}-{}-{} {who}") == "a-2.0-['b'] me");
  CHECK(text("{1}{0}{0!r}{who!s}") == "2.0a'a'me");
  CHECK(text("{{x}} {{{}}}") == "{x} {a}");
  CHECK(text_method("<{}>", "format").call(given).text() == "<a>");
  for (const char* wrong : {"{", "}", "{} {0}", "{3}", "{}{}{}{}", "{you}", "{:>5}", "{0.real}", "{0[1]}", "{0!a}"})
    CHECK_THROWS_AS(text(wrong), template_error);
}
