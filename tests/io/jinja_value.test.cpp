// SPDX-License-Identifier: MIT
#include "intaglio/io/jinja_value.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::io::jinja;

TEST_CASE("jinja_value: values print as Python's str() prints them", "[jinja]") {
  const auto of = [](const char* json) { return value::of_json(nlohmann::ordered_json::parse(json)).print(); };
  CHECK(of("[null, true, 1, 2.0, \"it's\", {\"b\": [], \"a\": {}}]") ==
        "[None, True, 1, 2.0, \"it's\", {'b': [], 'a': {}}]");
  CHECK(of("\"it's\"") == "it's");
  CHECK(value(undefined{"x"}).print().empty());
  for (const auto& [number, text] :
       {std::pair{0.1, "0.1"}, {1e16, "1e+16"}, {123456.75, "123456.75"}, {1e-5, "1e-05"}, {-0.0, "-0.0"}})
    CHECK(value(number).print() == text);
  CHECK(quoted_text("a'b\"\n\\") == "'a\\'b\"\\n\\\\'");
}

TEST_CASE("jinja_value: equality and order", "[jinja]") {
  const auto of = [](const char* json) { return value::of_json(nlohmann::ordered_json::parse(json)); };
  CHECK(of("{\"a\": 1, \"b\": [2]}") == of("{\"b\": [2.0], \"a\": true}"));
  CHECK_FALSE(of("[1]") == of("[1, 2]"));
  CHECK_FALSE(of("1") == of("\"1\""));
  CHECK(less(of("[1, 2]"), of("[1, 3]")));
  CHECK_THROWS_AS(less(of("1"), of("\"1\"")), template_error);
  CHECK_THROWS_AS(of("1").text(), template_error);
  CHECK(elements(of("{\"a\": 1}")).size() == 1);
  CHECK(elements(value("\xC3\xA9x")).size() == 2);
}
