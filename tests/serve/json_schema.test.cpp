// SPDX-License-Identifier: MIT
#include "../../examples/serve/json_schema.hpp"

#include <catch2/catch_test_macros.hpp>

#include <functional>
#include <set>

#include "../../examples/serve/api_error.hpp"
#include "texts.hpp"

using namespace intaglio::serve;

namespace {

json read(const std::string& text) { return parse_json(text, {}); }

/// The languages differ: a text of one is none of the other. Or only one of them is taken at all.
bool differ(const json& a, const json& b, std::mt19937& random) {
  std::shared_ptr<const grammar> forms[2];
  for (int i = 0; i < 2; ++i) try {
      forms[i] = form_of(json_text(i == 0 ? a : b));
    } catch (const api_error&) {}
  if (!forms[0] || !forms[1]) return forms[0] != forms[1];
  for (int i = 0; i < 3000; ++i) {
    const auto& from = forms[i % 2];
    const std::string text = written(from, from->least_bytes() + static_cast<std::uint32_t>(random() % 50), random);
    if (!fits(forms[1 - i % 2], text)) return true;
  }
  return false;
}

/// A schema of each kind that holds another schema.
std::vector<std::pair<std::string, std::function<json(const json&)>>> holders() {
  const auto in = [](const char* outer) {
    return [outer](const json& inner) {
      const std::string text = outer, mark = "\"HERE\"";
      std::string out = text;
      for (auto at = out.find(mark); at != std::string::npos; at = out.find(mark, at + 1))
        out.replace(at, mark.size(), json_text(inner));
      return read(out);
    };
  };
  return {
      {"top", in(R"("HERE")")},
      {"properties",
       in(R"({"type":"object","properties":{"a":"HERE"},"required":["a"],"additionalProperties":false})")},
      {"properties, not required", in(R"({"type":"object","properties":{"a":"HERE"}})")},
      {"additionalProperties", in(R"({"type":"object","additionalProperties":"HERE","minProperties":1})")},
      {"additionalProperties beside",
       in(R"({"type":"object","properties":{"a":true},"additionalProperties":"HERE","required":["b"]})")},
      {"patternProperties",
       in(R"({"type":"object","patternProperties":{"^x":"HERE"},"additionalProperties":false,"minProperties":1})")},
      {"items", in(R"({"type":"array","items":"HERE","minItems":1})")},
      {"prefixItems", in(R"({"type":"array","prefixItems":[true,"HERE"]})")},
      {"items after prefixItems",
       in(R"({"type":"array","prefixItems":[{"type":"null"}],"items":"HERE","minItems":2})")},
      {"anyOf", in(R"({"anyOf":["HERE",{"const":"other"}]})")},
      {"oneOf", in(R"({"oneOf":[{"type":"object","properties":{"k":{"const":1},"v":"HERE"},"required":["k","v"]},)"
                   R"({"type":"object","properties":{"k":{"const":2}},"required":["k"]}]})")},
      {"allOf", in(R"({"allOf":[{},"HERE"]})")},
      {"allOf of one", in(R"({"allOf":["HERE"]})")},
      {"allOf beside",
       in(R"({"description":"x","allOf":["HERE"],"enum":[0,1,7,-3,2.5,"","abcdef","b","2024-01-01",[],[1],[1,1],)"
          R"([1,2,3],{},{"a":1},{"b":"x"},{"a":1,"c":2},true,null]})")},
      {"$ref", in(R"({"$defs":{"t":"HERE"},"$ref":"#/$defs/t"})")},
      {"$ref beside", in(R"({"$defs":{"t":"HERE"},"$ref":"#/$defs/t","title":"x","anyOf":[true]})")},
      {"recursive", in(R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]},"v":"HERE"},)"
                       R"("required":["next","v"]})")}};
}

/// Schemas in which each word matters: leaving one out changes what they say. A list of types is walked too.
const std::vector<std::string> wordy{
    R"({"type":"string"})",
    R"({"type":"string","minLength":3})",
    R"({"type":"string","maxLength":2})",
    R"({"type":"string","pattern":"^b+$"})",
    R"({"type":"string","format":"date"})",
    R"({"type":"string","contentEncoding":"base64"})",
    R"({"type":"integer"})",
    R"({"type":"integer","minimum":5})",
    R"({"type":"integer","maximum":-2})",
    R"({"type":"integer","exclusiveMinimum":1})",
    R"({"type":"integer","exclusiveMaximum":0})",
    R"({"type":"integer","multipleOf":7})",
    R"({"type":"number","minimum":0,"maximum":1})",
    R"({"type":"number","exclusiveMinimum":2.5,"exclusiveMaximum":3.5})",
    R"({"type":"number","multipleOf":0.5})",
    R"({"type":["number","null"],"minimum":0,"maximum":1})",
    R"({"type":["string","null"],"maxLength":1})",
    R"({"type":["integer","string"],"minimum":3,"pattern":"^a*$"})",
    R"({"type":["null","integer","boolean"],"exclusiveMaximum":4})",
    R"({"minimum":6})",
    R"({"maxLength":1})",
    R"({"minItems":2})",
    R"({"required":["b"]})",
    R"({"enum":[1,"b",null]})",
    R"({"const":"b"})",
    R"({"enum":[1,"b",null],"type":"string"})",
    R"({"enum":[1,5,9],"minimum":4})",
    R"({"enum":["a","bbb"],"minLength":2})",
    R"({"enum":[0,3],"anyOf":[{"minimum":1},{"type":"string"}]})",
    R"({"anyOf":[{"type":"null"},{"type":"boolean"}]})",
    R"({"oneOf":[{"type":"null"},{"type":"string","maxLength":1}]})",
    R"({"allOf":[{"type":"integer"},{"minimum":7}]})",
    R"({"anyOf":[{"type":"integer"},{"type":"null"}],"minimum":7})",
    R"({"type":"array"})",
    R"({"type":"array","items":{"type":"null"}})",
    R"({"type":"array","items":{"type":"null"},"minItems":2})",
    R"({"type":"array","maxItems":1})",
    R"({"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":2})",
    R"({"type":"array","prefixItems":[{"type":"null"}]})",
    R"({"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"boolean"},"maxItems":2})",
    R"({"type":"object"})",
    R"({"type":"object","properties":{"a":{"type":"null"}}})",
    R"({"type":"object","properties":{"a":{"type":"null"}},"required":["a"]})",
    R"({"type":"object","additionalProperties":{"type":"null"}})",
    R"({"type":"object","additionalProperties":false})",
    R"({"type":"object","patternProperties":{"^x":{"type":"null"}},"minProperties":1})",
    R"({"type":"object","propertyNames":{"pattern":"^x"},"minProperties":1})",
    R"({"type":"object","minProperties":2})",
    R"({"type":"object","maxProperties":1})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"minProperties":1,"maxProperties":1})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"propertyNames":{"enum":["b"]}})",
    R"({"type":"object","propertyNames":{"enum":["b","c"]},"additionalProperties":{"type":"null"}})",
};

}  // namespace

TEST_CASE("no word of a schema is dropped, wherever it stands") {
  std::mt19937 random(11);
  std::set<std::string> words;
  int pairs = 0;
  for (const auto& [holder, in] : holders()) {
    for (const std::string& text : wordy) {
      const json whole = read(text);
      // Some values of a list say no more than others beside these words.
      if (holder == "allOf beside") continue;
      for (const auto& [word, inside] : whole.items()) {
        words.insert(word);
        json less = whole;
        less.erase(word);
        // A word of one type alone says that it is this type, as `type` does.
        if (word == "type" && less.size() != 0 && inside.is_string()) continue;
        INFO(holder << ": " << text << " without " << word);
        CHECK(differ(in(whole), in(less), random));
        ++pairs;
      }
    }
  }
  CHECK(pairs > 800);
  CHECK(words.size() >= 26);
}

TEST_CASE("enumerated values are checked against every other keyword") {
  const auto beside = holders()[13];
  REQUIRE(beside.first == "allOf beside");
  const auto kept = [&](const char* schema) {
    std::string out;
    const auto form = form_of(json_text(beside.second(read(schema))));
    for (const char* const each :
         {"0", "1", "7", "-3", "2.5", "\"\"", "\"abcdef\"", "\"b\"", "\"2024-01-01\"", "[]", "[1]", "[1,1]", "[1,2,3]",
          "{}", "{\"a\":1}", "{\"b\":\"x\"}", "{\"a\":1,\"c\":2}", "true", "null"})
      if (fits(form, each)) out += std::string(out.empty() ? "" : " ") + each;
    return out;
  };
  CHECK(kept(R"({"type":"integer"})") == "0 1 7 -3");
  CHECK(kept(R"({"type":"number","minimum":1,"multipleOf":0.5})") == "1 7 2.5");
  CHECK(kept(R"({"type":"string","format":"date"})") == "\"2024-01-01\"");
  CHECK(kept(R"({"type":["string","null"],"minLength":1,"pattern":"b"})") == "\"abcdef\" \"b\" null");
  CHECK(kept(R"({"type":"array","items":{"type":"integer"},"uniqueItems":true,"minItems":1})") == "[1] [1,2,3]");
  CHECK(kept(R"({"type":"array","prefixItems":[true,{"const":2}],"minItems":2})") == "[1,2,3]");
  CHECK(kept(R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false})") ==
        "{} {\"a\":1}");
  CHECK(kept(R"({"type":"object","required":["a"],"maxProperties":1})") == "{\"a\":1}");
  CHECK(kept(R"({"type":"object","patternProperties":{"[bc]":{"type":"integer"}},"minProperties":1})") ==
        "{\"a\":1} {\"a\":1,\"c\":2}");
  CHECK(kept(R"({"type":"object","propertyNames":{"enum":["a","b"]},"minProperties":1})") == "{\"a\":1} {\"b\":\"x\"}");
  CHECK(kept(R"({"anyOf":[{"type":"null"},{"oneOf":[{"type":"boolean"},{"const":0}]}]})") == "0 true null");
  CHECK(kept(R"({"$ref":"#/allOf/0/$defs/x","$defs":{"x":{"type":"boolean"}}})") == "true");
  CHECK(kept(R"({"$ref":"#/allOf/0/%24defs/a%20b~1c","$defs":{"a b/c":{"type":"boolean"}}})") == "true");
  CHECK(kept(R"({"$ref":"#/allOf/0/$defs/50%","$defs":{"50%":{"type":"boolean"}}})") == "true");
}

TEST_CASE("alternatives of oneOf have to exclude each other") {
  for (const char* const good :
       {R"({"oneOf":[{"type":"string"},{"type":"null"}]})", R"({"oneOf":[{"const":1},{"const":2},{"type":"string"}]})",
        R"({"oneOf":[{"type":"integer","maximum":0},{"type":"integer","minimum":1}]})",
        R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"^b"}]})",
        R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"discriminator":{"propertyName":"k","mapping":{}},)"
        R"("$defs":{
          "a":{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},"b":{"type":"object",)"
        R"("properties":{"k":{"enum":["b","c"]}},"required":["k"]}}})",
        R"({"oneOf":[{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false},)"
        R"({"type":"object","properties":{"b":{}},"required":["b"],"additionalProperties":false}]})",
        R"({"oneOf":[{"type":"array","minItems":2},{"type":"array","maxItems":1}]})"}) {
    INFO(good);
    CHECK_NOTHROW(form_of(good));
  }
  for (const char* const bad :
       {R"({"oneOf":[{},{"type":"null"}]})", R"({"oneOf":[{"type":"number"},{"type":"integer"}]})",
        R"({"oneOf":[{"pattern":"a"},{"pattern":"b"}]})",
        R"({"oneOf":[{"type":"object"},{"required":["a"],"type":"object"}]})",
        R"({"oneOf":[{"minimum":1},{"maximum":1}]})"}) {
    INFO(bad);
    CHECK_THROWS_AS(form_of(bad), api_error);
  }
}

TEST_CASE("words that are not known are refused with their path") {
  const auto refusal = [](const char* schema) -> std::string {
    try {
      form_of(schema);
    } catch (const api_error& error) {
      CHECK(std::string_view(error.what()).size() <= 400);
      return error.what();
    }
    return {};
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  for (const char* const word :
       {"not", "if", "then", "contains", "dependentRequired", "unevaluatedProperties", "nullable", "minimun", "Pattern",
        "additionalItems", "x-order", "$dynamicRef", "enums", "optional", "discriminator", "contentMediaType"})
    for (const auto& [holder, in] : holders()) {
      const std::string text = refusal(json_text(in(json{{word, json::object()}})).c_str());
      INFO(holder << ' ' << word << ": " << text);
      CHECK(has(text, ("'" + std::string(word) + "'").c_str()));
    }
  CHECK(has(refusal(R"({"type":"object","properties":{"a":{"type":"string","format":"phone"}}})"),
            "schema.properties.a.format: 'phone'"));
  CHECK(has(refusal(R"({"type":"string","pattern":"(?<=a)b"})"), "schema.pattern: the pattern has"));
  CHECK(has(refusal(R"({"type":"array","items":[{}]})"), "prefixItems"));
  CHECK(has(refusal(R"({"type":"array","items":{"type":"string"},"uniqueItems":true})"), "uniqueItems"));
  CHECK(has(refusal(R"({"$ref":"#/$defs/none"})"), "'#/$defs/none' is not in the document"));
  CHECK(has(refusal(R"({"type":"string","minLength":3,"maxLength":2})"), "maxLength is less than minLength"));
  CHECK(has(refusal(R"({"type":["string","strin"]})"), "'strin' is no type"));
}

TEST_CASE("members and items that hold together") {
  const auto form =
      form_of(R"({"$defs":{"base":{"type":"object","properties":{"id":{"type":"integer"},"n":{"type":"string"}},)"
              R"("required":["id"]}},
          "allOf":[{"$ref":"#/$defs/base"},{"properties":{"n":{"maxLength":1},"x":{"type":"null"}},)"
              R"("required":["x"]}]})");
  CHECK(fits(form, R"({"id":1,"n":"a","x":null})"));
  CHECK(fits(form, R"({"id":1,"x":null})"));
  for (const char* const bad :
       {R"({"id":1,"n":"ab","x":null})", R"({"id":1})", R"({"x":null})", R"({"id":"1","x":null})"})
    CHECK_FALSE(fits(form, bad));
  const auto unique =
      form_of(R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":1,"maxItems":2})");
  for (const char* const good : {R"(["a"])", R"(["a","c"])", R"(["b", "c"])"}) CHECK(fits(unique, good));
  for (const char* const bad : {"[]", R"(["a","a"])", R"(["a","b","c"])"}) CHECK_FALSE(fits(unique, bad));
  const auto counted =
      form_of(R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["c"],)"
              R"("minProperties":2,"maxProperties":2})");
  for (const char* const good : {R"({"a":1,"c":3})", R"({"b":2,"c":3})"}) CHECK(fits(counted, good));
  for (const char* const bad : {R"({"c":3})", R"({"a":1,"b":2,"c":3})", R"({"a":1,"b":2})"})
    CHECK_FALSE(fits(counted, bad));
  const auto extra =
      form_of(R"({"type":"object","properties":{"a":{"const":1}},"additionalProperties":{"type":"null"},)"
              R"("patternProperties":{"^x-":{"const":2}}})");
  for (const char* const good : {"{}", R"({"a":1})", R"({"a":1,"x-b":2,"q":null})", R"({"x-":2})", R"({"aa":null})"})
    CHECK(fits(extra, good));
  for (const char* const bad : {R"({"a":null})", R"({"x-b":null})", R"({"q":2})", R"({"a":1,"a":null})"})
    CHECK_FALSE(fits(extra, bad));
}
