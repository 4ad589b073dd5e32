// SPDX-License-Identifier: MIT
// What is expected here is what jinja2 3.1 gives, tojson as transformers 5.24.
#include "intaglio/io/jinja_filters.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/io/jinja_template.hpp"

using namespace intaglio::io;

namespace {

std::string value_of(const std::string& text) {
  return jinja::render("{{ " + text + " }}",
                       {{"s", "The quick"},
                        {"l", {3, 1, 2}},
                        {"m", {{{"k", "b"}, {"v", 1}}, {{"k", "a"}, {"v", 2}}, {{"k", "A"}, {"v", 3}}}},
                        {"d", {{"b", 1}, {"a", {1, {{"z", nullptr}}}}, {"C", "\xC3\xA9\"\n"}}}});
}
struct expected {
  const char *text, *value;
};
void expect_all(std::initializer_list<expected> all) {
  for (const auto& [text, value] : all) {
    INFO(text);
    CHECK(value_of(text) == value);
  }
}

}  // namespace

TEST_CASE("jinja_filters: tojson as Python's json.dumps", "[jinja]") {
  expect_all({{"d|tojson", "{\"b\": 1, \"a\": [1, {\"z\": null}], \"C\": \"\xC3\xA9\\\"\\n\"}"},
              {"d|tojson(sort_keys=true)", "{\"C\": \"\xC3\xA9\\\"\\n\", \"a\": [1, {\"z\": null}], \"b\": 1}"},
              {"[1, 2.5, true, []]|tojson(indent=2)", "[\n  1,\n  2.5,\n  true,\n  []\n]"},
              {"{'a': {}}|tojson(separators=(',', ':'))", "{\"a\":{}}"},
              {"'</a>'|tojson", "\"</a>\""},
              {"['\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\t']|tojson(ensure_ascii=true)",
               "[\"\\u00e9\\u20ac\\ud83d\\ude00\\u007f\\t\"]"},
              {"{'\xC3\xA9': 1}|tojson(true, 1)", "{\n \"\\u00e9\": 1\n}"}});
  for (const char* wrong :
       {"nothing|tojson", "1|tojson(indent=-1)", "1|tojson(indent=1000)", "1|tojson(separators=[1])"})
    CHECK_THROWS_AS(value_of(wrong), jinja::template_error);
}

TEST_CASE("jinja_filters: lists", "[jinja]") {
  expect_all({{"l|sort", "[1, 2, 3]"},
              {"l|sort(reverse=true)", "[3, 2, 1]"},
              {"['b', 'A', 'c']|sort", "['A', 'b', 'c']"},
              {"m|sort(attribute='k')|map(attribute='v')|list", "[2, 3, 1]"},
              {"d|dictsort|map('first')|join", "abC"},
              {"{'b': 2, 'a': 3}|dictsort(by='value')|map('last')|list", "[2, 3]"},
              {"l|reverse|list", "[2, 1, 3]"},
              {"s|reverse", "kciuq ehT"},
              {"l|first", "3"},
              {"l|last", "2"},
              {"[]|first", ""},
              {"l|max", "3"},
              {"l|min", "1"},
              {"l|sum", "6"},
              {"m|sum(attribute='v')", "6"},
              {"l|join('-')", "3-1-2"},
              {"m|join(',', attribute='k')", "b,a,A"},
              {"[1, 2, 3]|select('odd')|list", "[1, 3]"},
              {"[0, 1, '']|reject|list", "[0, '']"},
              {"m|selectattr('v', 'gt', 1)|map(attribute='k')|join", "aA"},
              {"m|rejectattr('k', 'equalto', 'a')|map(attribute='v')|list", "[1, 3]"},
              {"[{}]|map(attribute='a', default=9)|list", "[9]"},
              {"['a', 'A', 'b']|unique|list", "['a', 'b']"},
              {"none|selectattr('k', 'x')|list", "[]"},
              {"none|map('nothing')|list", "[]"},
              {"0|reject('odd')|list", "[]"},
              {"''|rejectattr('k')|list", "[]"},
              {"s|list|length", "9"},
              {"d|items|list|length", "3"},
              {"d|length", "3"},
              {"[[1, 2], [3]]|map('length')|list", "[2, 1]"}});
}

TEST_CASE("jinja_filters: what filters choose is read once, as Python's generators are", "[jinja]") {
  const auto rendered = [](const std::string& text) {
    return jinja::render(text, {{"l", {"a", "b", "c"}}, {"d", {{"k", 1}}}});
  };
  CHECK(rendered("{% if []|select %}yes{% endif %}{{ not ({}|items) }}") == "yesFalse");
  CHECK(rendered("{% set g = l|map('upper') %}{{ g|join }}-{{ g|join }}") == "ABC-");
  CHECK(
      rendered(
          "{% set g = l|unique %}{% for x in g %}{{ x }}{{ loop.length }}{% endfor %}{% for x in g %}x{% endfor %}") ==
      "a3b3c3");
  CHECK(rendered("{% set g = l|reverse %}{{ g|first }}{{ g|list }}") == "c['b', 'a']");
  CHECK(rendered("{% set g = l|select %}{{ 'b' in g }}{{ g|list }}{{ 'b' in g }}") == "True['c']False");
  CHECK(rendered("{% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}") == "k1");
  CHECK(rendered("{{ (l|select)[0] }}{{ (l|select) == l }}{{ (l|select) is sequence }}{{ (l|select) is iterable }}") ==
        "FalseFalseTrue");
  for (const char* wrong : {"{{ l|select }}", "{{ l|select|length }}", "{{ l|select|last }}", "{{ l|select|tojson }}",
                            "{{ (l|select) + l }}", "{{ (l|select)[1:] }}", "{{ l|reverse|string }}"})
    CHECK_THROWS_AS(rendered(wrong), jinja::template_error);
}

TEST_CASE("jinja_filters: texts that are added to safe ones are escaped", "[jinja]") {
  expect_all({{"'<'|safe + '<\"' + \"'\"", "<&lt;&#34;&#39;"},
              {"'<' + '<'|safe", "&lt;<"},
              {"'<'|safe ~ '<'", "<<"},
              {"'<'|e + '&'", "&lt;&amp;"},
              {"'<'|e|e|string", "&lt;"},
              {"'<a'|safe|upper + '<'", "<A&lt;"},
              {"(' <'|safe).strip() + '<'", "<&lt;"},
              {"('<'|safe) * 2 + '<'", "<<&lt;"},
              {"('<'|safe)|indent + '<'", "<&lt;"},
              {"('<'|safe)|replace('a', 'b') + '<'", "<<"},
              {"'<' + '<'", "<<"}});
  CHECK_THROWS_AS(value_of("('%s'|safe) % '<'"), jinja::template_error);
}

TEST_CASE("jinja_filters: texts and numbers", "[jinja]") {
  expect_all({{"s|upper", "THE QUICK"},
              {"s|title", "The Quick"},
              {"'hELLO'|capitalize", "Hello"},
              {"' a '|trim", "a"},
              {"'xax'|trim('x')", "a"},
              {"s|replace('q', 'Q')", "The Quick"},
              {"'aaa'|replace('a', 'b', 2)", "bba"},
              {"'\xC3\xA9\xC3\x9F'|length", "2"},
              {"nothing|default('z')", "z"},
              {"''|default('z', true)", "z"},
              {"none|d('z')", "None"},
              {"'a\n\nb'|indent(2)", "a\n\n  b"},
              {"'a\nb'|indent(2, true)", "  a\n  b"},
              {"'12'|int + 1", "13"},
              {"'1x'|int(5)", "5"},
              {"'2.5'|float", "2.5"},
              {"-3|abs", "3"},
              {"2.675|round(2)", "2.67"},
              {"2.5|round", "2.0"},
              {"7.1|round(0, 'ceil')", "8.0"},
              {"'<a>'|e", "&lt;a&gt;"},
              {"s|wordcount", "2"},
              {"'%s!'|format('a')", "a!"},
              {"7|string + 'a'", "7a"},
              {"d|attr('b')", ""}});
  CHECK_THROWS_AS(value_of("s|nothing"), jinja::template_error);
  CHECK_THROWS_AS(value_of("s is nothing"), jinja::template_error);
}
