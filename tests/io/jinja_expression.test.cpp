// SPDX-License-Identifier: MIT
// What is expected here is what jinja2 3.1 gives.
#include "intaglio/io/jinja_expression.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/io/jinja_template.hpp"

using namespace intaglio::io;

namespace {

std::string value_of(const std::string& text) {
  return jinja::render("{{ " + text + " }}", {{"x", 7},
                                              {"y", -3},
                                              {"s", "The quick"},
                                              {"u", "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E"},
                                              {"l", {3, 1, 2}},
                                              {"d", {{"b", 1}, {"items", 5}}},
                                              {"no", nullptr}});
}
struct expected {
  const char *text, *value;
};

}  // namespace

TEST_CASE("jinja_expression: numbers as Python has them", "[jinja]") {
  for (const auto& [text, value] : {expected{"x + y * 2", "1"},
                                    {"x / 2", "3.5"},
                                    {"x // 2", "3"},
                                    {"y // 2", "-2"},
                                    {"y % 5", "2"},
                                    {"x % -4", "-1"},
                                    {"2 ** 10", "1024"},
                                    {"2 ** 3 ** 2", "64"},
                                    {"2 ** -1", "0.5"},
                                    {"-1 ** 65", "-1"},
                                    {"-1 ** 66", "1"},
                                    {"0 ** 0", "1"},
                                    {"-2 ** 63", "-9223372036854775808"},
                                    {"-x", "-7"},
                                    {"-2 ** 2", "4"},
                                    {"10 - 3 - 2", "5"},
                                    {"1e3", "1000.0"},
                                    {"0.1 + 0.2", "0.30000000000000004"},
                                    {"1e20", "1e+20"},
                                    {"1e-7", "1e-07"},
                                    {"1.0", "1.0"},
                                    {"1_000", "1000"},
                                    {"true + 1", "2"},
                                    {"7.5 % 2", "1.5"}}) {
    INFO(text);
    CHECK(value_of(text) == value);
  }
  for (const char* wrong :
       {"1 // 0", "1 % 0", "9999999999999999999", "9223372036854775807 + 1", "3 ** 64", "-2 ** 64", "no + 1"})
    CHECK_THROWS_AS(value_of(wrong), jinja::template_error);
}

TEST_CASE("jinja_expression: comparisons, logic and inline if", "[jinja]") {
  for (const auto& [text, value] : {expected{"x == 7.0", "True"},
                                    {"1 < 2 < 3", "True"},
                                    {"1 < 2 > 3", "False"},
                                    {"'B' < 'a'", "True"},
                                    {"l == [3, 1, 2]", "True"},
                                    {"not x", "False"},
                                    {"'' or s", "The quick"},
                                    {"'' and s", ""},
                                    {"3 in l", "True"},
                                    {"4 not in l", "True"},
                                    {"'qu' in s", "True"},
                                    {"'b' in d", "True"},
                                    {"x in nothing", "False"},
                                    {"1 if x else 2", "1"},
                                    {"1 if 0 else 2 if 0 else 3", "3"},
                                    {"1 if 0", ""},
                                    {"nothing == none", "False"},
                                    {"x is odd", "True"},
                                    {"x is not even", "True"},
                                    {"x is divisibleby 7", "True"},
                                    {"s is string and x is number", "True"},
                                    {"nothing is undefined", "True"},
                                    {"no is none", "True"},
                                    {"x is in l", "False"},
                                    {"d is mapping", "True"},
                                    {"s is sequence", "True"},
                                    {"x is eq 7", "True"},
                                    {"not s is string", "False"}}) {
    INFO(text);
    CHECK(value_of(text) == value);
  }
}

TEST_CASE("jinja_expression: items, attributes and slices", "[jinja]") {
  for (const auto& [text, value] : {expected{"s[0]", "T"},
                                    {"s[-1]", "k"},
                                    {"s[4:9]", "quick"},
                                    {"s[::-1]", "kciuq ehT"},
                                    {"u[1:]", "\xE6\x9C\xAC\xE8\xAA\x9E"},
                                    {"u[::-1]", "\xE8\xAA\x9E\xE6\x9C\xAC\xE6\x97\xA5"},
                                    {"l[1:]", "[1, 2]"},
                                    {"l[-2:]", "[1, 2]"},
                                    {"l[5:]", "[]"},
                                    {"l[::-2]", "[2, 3]"},
                                    {"l[9]", ""},
                                    {"d.b", "1"},
                                    {"d['items']", "5"},
                                    {"d.nothing", ""},
                                    {"d.get('z', 4)", "4"},
                                    {"d.get('z')", "None"},
                                    {"(1, 2)[1]", "2"},
                                    {"{'a': [1, {'b': 2}]}.a[1].b", "2"},
                                    {"'a' 'b' ~ 1", "ab1"},
                                    {"'%s-%03d' % ('a', 7)", "a-007"},
                                    {"'ab' * 2", "abab"},
                                    {"l + [4]", "[3, 1, 2, 4]"},
                                    {"\"\\u00e9\\x41\\n\"|length", "3"}}) {
    INFO(text);
    CHECK(value_of(text) == value);
  }
}
