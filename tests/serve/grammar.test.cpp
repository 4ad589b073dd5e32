// SPDX-License-Identifier: MIT
#include "../../examples/serve/grammar.hpp"

#include <catch2/catch_test_macros.hpp>

#include <random>
#include <stdexcept>

#include "../../examples/serve/api_error.hpp"
#include "../../examples/serve/json_schema.hpp"
#include "../../examples/serve/text_match.hpp"
#include "texts.hpp"

using namespace intaglio::serve;

TEST_CASE("forms take what holds to the schema and nothing else") {
  const auto person =
      form_of(R"({"type":"object","properties":{"name":{"type":"string","maxLength":3},"age":{"type":"integer",)"
              R"("minimum":-12,"maximum":130}},"required":["age"]})");
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
  for (const char* const schema :
       {R"({})", R"({"type":"object"})",
        R"({"$defs":{"t":{"type":"object","properties":{"v":{"type":"number"},"c":{"type":"array",)"
        R"("items":{"$ref":"#/$defs/t"}}},"required":["v","c"]}},"$ref":"#/$defs/t"})",
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

TEST_CASE("grammars that no text fits, or that call themselves first, are refused") {
  for (const char* const schema :
       {R"({"$ref":"#"})", R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})",
        R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
        R"({"type":"string","minLength":3,"maxLength":2})", R"({"type":"tuple"})",
        R"({"type":"object","additionalProperties":false,"required":["a"]})",
        R"({"allOf":[{"type":"string"},{"type":"null"}]})", R"({"type":"string","minLength":2001})"}) {
    INFO(schema);
    CHECK_THROWS_AS(form_of(schema), api_error);
  }
}
