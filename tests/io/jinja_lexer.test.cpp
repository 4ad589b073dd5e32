// SPDX-License-Identifier: MIT
#include "intaglio/io/jinja_lexer.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::io::jinja;

namespace {

std::string kinds(std::string_view text) {
  std::string out;
  for (const token& each : lexer(text).tokens()) {
    constexpr const char* names[] = {"data",   "{{",      "}}",   "{%",   "%}", "name",
                                     "string", "integer", "real", "sign", "end"};
    out += std::string(names[static_cast<std::size_t>(each.kind)]) + (each.text.empty() ? "" : ":" + each.text) + " ";
  }
  return out;
}

}  // namespace

TEST_CASE("jinja_lexer: tags, texts and the words inside tags", "[jinja]") {
  CHECK(kinds("a{{ x }}b") == "data:a {{ name:x }} data:b end ");
  CHECK(kinds("{% if a.b >= 1.5e3 %}") == "{% name:if name:a sign:. name:b sign:>= real:1.5e3 %} end ");
  CHECK(kinds("{{ 'a\\n\\'' \"\\u00e9\" 1_0 ** 2 }}") ==
        "{{ string:a\n' string:\xC3\xA9 integer:10 sign:** integer:2 }} end ");
  CHECK(kinds("{{-x-}}") == "{{ name:x }} end ");
  CHECK(kinds("{") == "data:{ end ");
  CHECK(kinds("{x}{") == "data:{x}{ end ");
  CHECK(kinds("") == "end ");
}

TEST_CASE("jinja_lexer: tokens know their line", "[jinja]") {
  const auto tokens = lexer("a\n\n{{\nx }}").tokens();
  REQUIRE(tokens.size() == 5);
  CHECK(tokens[1].line == 3);
  CHECK(tokens[2].line == 4);
}
