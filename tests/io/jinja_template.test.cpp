// SPDX-License-Identifier: MIT
// What is expected here is what jinja2 3.1 gives, set up as transformers sets it up.
#include "intaglio/io/jinja_template.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace intaglio::io;

namespace {

std::string rendered(const std::string& text) {
  return jinja::render(
      text,
      {{"x", 7}, {"s", "The quick"}, {"l", {3, 1, 2}}, {"d", {{"b", 1}, {"a", nullptr}, {"items", 5}}}, {"yes", true}});
}
void refused(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK_THROWS_MATCHES(rendered(text), jinja::template_error, MessageMatches(ContainsSubstring(part)));
}

}  // namespace

TEST_CASE("jinja_template: white space around tags goes as trim_blocks, lstrip_blocks and signs say", "[jinja]") {
  CHECK(rendered("a\n  {% if yes %}\n  b\n  {% endif %}\nc\n") == "a\n  b\nc");
  CHECK(rendered("a  {%- if yes -%}  b  {%- endif %}\n c") == "ab c");
  CHECK(rendered("a\n  {%+ if yes %}b{% endif +%}\nc") == "a\n  b\nc");
  CHECK(rendered("{# note #}\na{#- note -#}\n b") == "ab");
  CHECK(rendered("{{ x }}\n{{- x -}}\n{{ x }}") == "777");
  CHECK(rendered("a\r\nb\rc\n") == "a\nb\nc");
  CHECK(rendered("{% raw %}{{ x }}{% if %}{% endraw %}") == "{{ x }}{% if %}");
  CHECK(rendered("{{ {'a': {'b': 1}}.a.b }}{{ '}}' }}") == "1}}");
}

TEST_CASE("jinja_template: loops know where they are, and names in them are gone behind them", "[jinja]") {
  CHECK(rendered("{% for a in l %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ a }};{% endfor %}") ==
        "1TrueFalse3;2FalseFalse1;3FalseTrue2;");
  CHECK(rendered("{% for a in l if a > 1 %}{{ loop.index }}:{{ a }} {% else %}none{% endfor %}") == "1:3 2:2 ");
  CHECK(rendered("{% for a in [] %}x{% else %}none{% endfor %}") == "none");
  CHECK(rendered("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}") == "b=1;a=None;items=5;");
  CHECK(rendered("{% for a in l %}{% if a == 1 %}{% continue %}{% endif %}{{ a }}{% endfor %}") == "32");
  CHECK(rendered("{% for a in l %}{% if a == 1 %}{% break %}{% endif %}{{ a }}{% endfor %}") == "3");
  CHECK(rendered("{% for a in l %}{{ loop.previtem is defined }}{{ loop.nextitem|default('-') }}{% endfor %}") ==
        "False1True2True-");
  CHECK(rendered("{% set q = 1 %}{% for a in l %}{% set q = q + a %}{{ q }}{% endfor %}{{ q }}") == "4231");
  CHECK(rendered("{% set n = namespace(q=1) %}{% for a in l %}{% set n.q = n.q + a %}{% endfor %}{{ n.q }}") == "7");
  CHECK(rendered("{% for a in l %}{{ loop.cycle('x', 'y') }}{{ loop.changed(a > 1) }}{% endfor %}") ==
        "xTrueyTruexTrue");
}

TEST_CASE("jinja_template: macros, calls, filters over blocks, and texts that are set", "[jinja]") {
  CHECK(rendered("{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(b=1, a=5) }}") == "1-2 5-1");
  CHECK(rendered("{% macro f(n) %}{% if n %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}") == "321");
  CHECK(rendered("{% macro f(a) %}{{ caller(a) }}{% endmacro %}{% call(v) f(4) %}got {{ v }}{% endcall %}") == "got 4");
  CHECK(rendered("{% macro f() %}{{ g }}{% endmacro %}{% set g = 5 %}{{ f() }}") == "5");
  CHECK(rendered("{% filter upper %}abc{{ s }}{% endfilter %}") == "ABCTHE QUICK");
  CHECK(rendered("{% set z | upper %}in {{ x }}{% endset %}[{{ z }}]") == "[IN 7]");
  CHECK(rendered("{% generation %}a{% endgeneration %}b") == "ab");
}

TEST_CASE("jinja_template: what cannot be parsed or run is refused with its line", "[jinja]") {
  refused("a\nb\n{% unknown %}", "line 3: the tag 'unknown' is not supported");
  refused("{% if yes %}", "expected 'elif', found the end");
  refused("{% endif %}", "the tag 'endif' is not supported");
  refused("{{ x", "line 1: a tag without end");
  refused("{# x", "a comment without end");
  refused("{% raw %}x", "raw without endraw");
  refused("{{ 'x }}", "a string without end");
  refused("{{ x ? }}", "unexpected character '?'");
  refused("{{ ) }}", "unexpected ')'");
  refused("{% for a in l recursive %}{% endfor %}", "recursive loops are not supported");
  refused("{% include 'x' %}", "the tag 'include' is not supported");
  refused("{{ raise_exception('no system') }}", "no system");
  refused("{{ nothing.at }}", "'nothing' is undefined");
  refused("{{ s + 1 }}", "+: not for a string and a whole number");
  refused("{% set s.x = 1 %}", "'s' is no namespace");
  refused("{% macro f(a) %}{% endmacro %}{{ f(b=1) }}", "macro 'f' has no parameter 'b'");
  refused("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "macro 'f' takes 1 arguments");
  refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls nested too deeply");
  refused("{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}", "nested too deeply");
  refused("{{ " + std::string(1000, '-') + "1 }}", "nested too deeply");
  refused("{{ range(2000000) }}", "more than 1000000 numbers in a range");
  refused("{{ range() }}", "an argument is missing");
  refused("{% for a, b in l %}{% endfor %}", "expected a list, found a whole number");
}
