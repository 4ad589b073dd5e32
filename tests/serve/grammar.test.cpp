// SPDX-License-Identifier: MIT
#include "../../examples/serve/grammar.hpp"

#include <catch2/catch_test_macros.hpp>

#include <random>
#include <stdexcept>

#include "../../examples/serve/api_error.hpp"
#include "../../examples/serve/json_schema.hpp"

using namespace intaglio::serve;

namespace {

std::shared_ptr<const grammar> form_of(const char* schema) {
  return std::make_shared<const grammar>(grammar_of_schema(parse_json(schema, {}), "schema"));
}

bool fits(const std::shared_ptr<const grammar>& form, std::string_view text) {
  text_match match(form);
  if (!match.allows(text, 1'000'000)) return false;
  match.take(text);
  return match.complete();
}

/// A text written byte by byte among what is allowed, which has to end within `most` bytes.
std::string written(const std::shared_ptr<const grammar>& form, std::uint32_t most, std::mt19937& random) {
  text_match match(form);
  std::string out;
  while (!match.finished() && out.size() < most && !(match.complete() && random() % 4 == 0)) {
    std::string allowed;
    for (int byte = 0; byte < 256; ++byte)
      if (const char one = static_cast<char>(byte);
          match.allows({&one, 1}, most - static_cast<std::uint32_t>(out.size()) - 1))
        allowed += one;
    if (allowed.empty()) break;
    out += allowed[random() % allowed.size()];
    match.take(std::string_view(out).substr(out.size() - 1));
  }
  CHECK(match.complete());
  return out;
}

}  // namespace

TEST_CASE("forms take what holds to the schema and nothing else") {
  const auto person = form_of(
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":3},"age":{"type":"integer","minimum":-12,"maximum":130}},"required":["age"]})");
  for (const char* const text :
       {R"({"name":"abc","age":130})", R"({ "age": -12 })", R"({"name":"","age":0})", "{\n  \"age\": 7\n}",
        R"({"name":"\u00e4\n\"","age":1})", "{\"name\":\"\xC3\xA4\",\"age\":1}"}) {
    INFO(text);
    CHECK(fits(person, text));
  }
  for (const char* const text :
       {"{}", R"({"name":"a"})", R"({"age":131})", R"({"age":-13})", R"({"age":01})", R"({"age":1,"name":"a"})",
        R"({"age":1,})", R"({"name":"abcd","age":1})", R"({"age":1.0})", "{\"name\":\"\xC3\",\"age\":1}",
        R"({"name":"\ud800","age":1})", "{\"name\":\"\n\",\"age\":1}", R"({"age":1}x)", R"([])", ""}) {
    INFO(text);
    CHECK_FALSE(fits(person, text));
  }
  const auto list = form_of(R"({"type":"array","items":{"enum":["a",null,2.5]},"minItems":1,"maxItems":2})");
  CHECK(fits(list, R"(["a"])"));
  CHECK(fits(list, R"([null, 2.5])"));
  CHECK_FALSE(fits(list, "[]"));
  CHECK_FALSE(fits(list, R"(["a","a","a"])"));
  CHECK(fits(std::make_shared<const grammar>(any_json_object()), R"({"a":[1,-0.5e+3,true,{"b":null}],"":""})"));
}

TEST_CASE("ranges of integers hold exactly those") {
  for (const auto& [least, most] :
       {std::pair{-105, 17}, {0, 0}, {7, 7}, {-3, -2}, {99, 1001}, {10, 20}, {-1000, 1000}}) {
    const auto form = form_of(
        ("{\"type\":\"integer\",\"minimum\":" + std::to_string(least) + ",\"maximum\":" + std::to_string(most) + "}")
            .c_str());
    int wrong = 0;
    for (int i = -1200; i <= 1200; ++i) wrong += fits(form, std::to_string(i)) != (i >= least && i <= most);
    INFO(least << " .. " << most);
    CHECK(wrong == 0);
  }
}

TEST_CASE("what a form allows can always be ended in the bytes that are left, and parses") {
  std::mt19937 random(1);
  for (
      const char* const schema :
      {R"({})", R"({"type":"object"})",
       R"({"$defs":{"t":{"type":"object","properties":{"v":{"type":"number"},"c":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["v","c"]}},"$ref":"#/$defs/t"})",
       R"({"type":"array","items":{"type":"string","minLength":2},"minItems":3})"}) {
    const auto form = form_of(schema);
    for (int i = 0; i < 60; ++i) {
      const std::uint32_t most = form->least_bytes() + static_cast<std::uint32_t>(random() % 60);
      const std::string text = written(form, most, random);
      INFO(schema << ": " << text);
      CHECK(text.size() <= most);
      CHECK(json::accept(text));
    }
  }
}

TEST_CASE("marking tokens says the same as trying each") {
  const std::vector<std::string> own{"{",    "{\"", "\"a", "\":", " ",  "a",    "aa",  "\xC3", "\xC3\xA4",
                                     "\xA4", "}",   "\"}", "1",   "12", "true", "tru", "e",    ",",
                                     "\n",   "[",   "]",   "]]",  "\\", "\\u",  "\"",  ":",    ""};
  const std::vector<std::string_view> texts(own.begin(), own.end());
  const token_bytes tokens(texts);
  std::mt19937 random(2);
  const auto form = std::make_shared<const grammar>(any_json_object());
  for (int run = 0; run < 20; ++run) {
    text_match match(form);
    for (std::uint32_t left = 30; left-- != 0 && !match.finished();) {
      std::vector<bool> allowed(own.size());
      match.mark_allowed(tokens, left, allowed);
      std::vector<std::size_t> list;
      for (std::size_t i = 0; i < own.size(); ++i) {
        CHECK(allowed[i] == match.allows(own[i], left));
        if (allowed[i]) list.push_back(i);
      }
      REQUIRE_FALSE(list.empty());
      match.take(own[list[random() % list.size()]]);
    }
    CHECK(match.complete());
  }
}

TEST_CASE("grammars that no text fits, or that call themselves first, are refused") {
  for (const char* const schema : {R"({"$ref":"#"})", R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})",
                                   R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                                   R"({"type":"string","minLength":3,"maxLength":2})", R"({"type":"tuple"})",
                                   R"({"type":"object","additionalProperties":false,"required":["a"]})",
                                   R"({"allOf":[{},{}]})", R"({"type":"string","minLength":2001})"}) {
    INFO(schema);
    CHECK_THROWS_AS(form_of(schema), api_error);
  }
}
