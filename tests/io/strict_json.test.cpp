// SPDX-License-Identifier: MIT
#include "intaglio/io/strict_json.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::file_error;
using namespace intaglio::io;

TEST_CASE("strict_json: values by path, or a sentence with the path", "[json]") {
  strict_json document("file.json");
  document.read_text(
      R"({"text":"a","yes":true,"count":7,"less":-7,"real":0.5,"none":null,"list":[1,{"x":"y"}],"object":{}})");
  const located_json root(document.path(), "", &document.root());
  CHECK(root["text"].text() == "a");
  CHECK(root["text"].text_or("b") == "a");
  CHECK(root["absent"].text_or("b") == "b");
  CHECK(root["none"].text_or("b") == "b");
  CHECK((root["yes"].boolean_or(false) && root["absent"].boolean_or(true) && !root["none"].boolean_or(false)));
  CHECK(root["count"].natural() == 7);
  CHECK((root["count"].number() == 7.0 && root["less"].number() == -7.0 && root["real"].number() == 0.5));
  CHECK(root["list"].elements().size() == 2);
  CHECK(root["absent"].elements().empty());
  CHECK(root["list"].elements()[1]["x"].text() == "y");
  CHECK(root["absent"]["deeper"].where() == "absent.deeper");
  CHECK((root["count"].equals(root["count"]) && root["absent"].equals(root["none"])));
  CHECK_FALSE((root["count"].equals(root["less"]) || root["count"].equals(root["absent"]) ||
               root["absent"].equals(root["count"])));
  CHECK((root["object"].is_object() && !root["absent"].is_object() && !root["list"].is_object() &&
         root["text"].is_string() && !root["none"].is_string()));
  CHECK_FALSE(root["absent"]["deeper"].present());
  CHECK_THROWS_WITH(root["count"].text(), "file.json: count: expected a string, found 7");
  CHECK_THROWS_WITH(root["absent"].text(), "file.json: absent: expected a string, found nothing");
  CHECK_THROWS_WITH(root["count"].boolean_or(false), "file.json: count: expected true or false, found 7");
  CHECK_THROWS_WITH(root["less"].natural(), "file.json: less: expected a natural number, found -7");
  CHECK_THROWS_WITH(root["absent"].natural(), ContainsSubstring("found nothing"));
  CHECK_THROWS_WITH(root["text"].number(), ContainsSubstring("expected a number, found \"a\""));
  CHECK_THROWS_WITH(root["absent"].number(), ContainsSubstring("found nothing"));
  CHECK_THROWS_WITH(root["text"].elements(), ContainsSubstring("text: expected an array"));
  CHECK_THROWS_WITH(root["list"].elements()[1]["x"]["y"], ContainsSubstring("list[1].x: expected an object"));
}

TEST_CASE("strict_json: a document of one value, or none at all", "[json]") {
  strict_json one("file.json");
  one.read_text("7");
  CHECK(one.root() == 7);
  for (const char* text : {"", "nul", "7 7", "{\"a\":1,}", "[", "\"a"}) {
    strict_json bad("file.json");
    CHECK_THROWS_WITH(bad.read_text(text), ContainsSubstring("JSON: expected a well-formed document"));
  }
  strict_json nul("file.json");
  CHECK_THROWS_WITH(nul.read_text(std::string_view("{}\0", 3)),
                    "file.json: offset 0x2: JSON: expected text, found a NUL byte");
  strict_json twice("file.json");
  CHECK_THROWS_WITH(twice.read_text(R"({"a":1,"b":{"a":1},"a":2})"),
                    ContainsSubstring("JSON key 'a': expected each key once in an object"));
}

TEST_CASE("strict_json: infinities by Python's name are numbers that no float reaches", "[json]") {
  strict_json document("file.json");
  document.read_text(R"({"limit":[0.0, Infinity,-Infinity],"Infinity":"Infinity \" Infinity"})");
  const located_json root(document.path(), "", &document.root());
  const auto limit = root["limit"].elements();
  CHECK((limit[0].real() == 0 && limit[1].real() == std::numeric_limits<float>::infinity() &&
         limit[2].real() == -std::numeric_limits<float>::infinity()));
  CHECK(root["Infinity"].text() == "Infinity \" Infinity");
  strict_json bad("file.json");
  CHECK_THROWS_WITH(bad.read_text(R"({"a":Infinity, "b":NaN})"), ContainsSubstring("offset 0x13"));
}

TEST_CASE("strict_json: a file that is too large is not read", "[json]") {
  const temporary_folder folder;
  const auto path = write_text(folder / "large.json", "{}");
  std::filesystem::resize_file(path, largest_json_bytes + 1);
  strict_json document(path.string());
  CHECK_THROWS_WITH(document.read_file(path),
                    ContainsSubstring("JSON: expected at most 268435456 bytes, found 268435457"));
  CHECK_THROWS_AS(document.read_file(folder.path()), file_error);
}
