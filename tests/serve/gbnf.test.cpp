// SPDX-License-Identifier: MIT
#include "../../examples/serve/gbnf.hpp"

#include "../../examples/serve/text_language.hpp"
#include "texts.hpp"

using namespace intaglio::serve;

namespace {

std::shared_ptr<const grammar> gbnf_of(std::string_view text) {
  auto out = std::make_shared<grammar>();
  out->finish(add_gbnf(*out, text));
  return out;
}
std::string refusal_of(std::string_view text) {
  try {
    gbnf_of(text);
  } catch (const std::invalid_argument& problem) { return problem.what(); } catch (const std::length_error&) {
    return "too large";
  }
  return {};
}

}  // namespace

TEST_CASE("grammars of llama.cpp are read", "[gbnf]") {
  const auto sum = gbnf_of(R"(# sums of numbers
root ::= number (op
  number)* "\n"   # lines go on in brackets
number ::= [1-9] [0-9]{0,2} | "0"
op ::= [-+*/]
)");
  for (const char* good : {"1\n", "0+10\n", "999*1-0\n"}) CHECK(fits(sum, good));
  for (const char* bad : {"01\n", "1000\n", "1+\n", "1", "1^2\n"}) CHECK_FALSE(fits(sum, bad));
  const auto text = gbnf_of("root ::= [^\"\\n]+ . \"\\u00e9\\x41\" x? |\n  \"two\"{2} \"a\"{2,3}\nx ::= \"\"");
  for (const char* good : {"ab\u00e9A", "\u20ac\U0001F600\u00e9A", "twotwoaa", "twotwoaaa"}) CHECK(fits(text, good));
  for (const char* bad : {"\u00e9A", "\"b\u00e9A", "twotwoa", "twotwoaaaa", "\n\n\u00e9A"})
    CHECK_FALSE(fits(text, bad));
  const auto nested = gbnf_of("root ::= list\nlist ::= \"[\" (root (\",\" root)*)? \"]\"");
  CHECK((fits(nested, "[[],[[]]]") && !fits(nested, "[[],]")));
}

TEST_CASE("what is no grammar is refused with its line and column", "[gbnf]") {
  CHECK(refusal_of("root ::= \"a") == "line 1, column 12: expected '\"', found the end");
  CHECK(refusal_of("root ::= a\nb ::= \"x\"") == "expected a definition of the rule 'a', found none");
  CHECK(refusal_of("x ::= \"a\"") == "expected a rule called root, found none");
  CHECK(refusal_of("") == "expected a rule called root, found none");
  CHECK(refusal_of("root ::= \"a\"\nroot ::= \"b\"").starts_with("line 2, column 9: expected one definition"));
  CHECK(refusal_of("root = \"a\"").starts_with("line 1, column 6: expected '::='"));
  CHECK(refusal_of("root ::= [z-a]").find("a range that ascends") != std::string::npos);
  CHECK(refusal_of("root ::= \"\\q\"").find("after '\\'") != std::string::npos);
  CHECK(refusal_of("root ::= \"\\uD800\"").find("a character of Unicode") != std::string::npos);
  CHECK(refusal_of("root ::= \"a\"{3,2}").find("as many repeats at most") != std::string::npos);
  CHECK(refusal_of("root ::= \"a\"{99999}").find("at most 2000 repeats") != std::string::npos);
  CHECK(refusal_of("root ::= (\"a\"").find("')'") != std::string::npos);
  CHECK(refusal_of("root ::= \"\xFF\"") == "expected UTF-8, found other bytes");
  CHECK_FALSE(refusal_of("root ::= root \"a\" | \"b\"").empty());  // before a byte is read
  CHECK_FALSE(refusal_of("root ::= (\"a\"?)* \"b\"").empty());
  CHECK(refusal_of("root ::= " + std::string(100, '(')).find("64 brackets") != std::string::npos);
  std::string large = "root ::= ";
  for (int i = 0; i < 150; ++i) large += "\"a\"{2000} ";
  CHECK(refusal_of(large) == "too large");
}

TEST_CASE("a regular expression is a form of the whole text", "[gbnf]") {
  const auto form_of_regex = [](const std::string& pattern) {
    language_budget budget;
    auto out = std::make_shared<grammar>();
    out->finish(
        text_language::of_pattern("^(?:" + pattern + ")$", budget).written(*out, budget, character_form::plain));
    return out;
  };
  CHECK((fits(form_of_regex("a|b\\n"), "a") && fits(form_of_regex("a|b\\n"), "b\n")));
  CHECK_FALSE(fits(form_of_regex("a|b"), "xb"));
  const auto date = form_of_regex("\\d{4}-\\d{2} \"\u00e9\"");
  CHECK((fits(date, "2026-11 \"\u00e9\"") && !fits(date, "2026-1 \"\u00e9\"")));
  CHECK(fits(form_of_regex("^[a-z]+$"), "abc"));
}
