// SPDX-License-Identifier: MIT
#include "intaglio/io/marked_texts.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

TEST_CASE("marked_texts: special tokens' texts are numbers between marks", "[marked_texts]") {
  const std::vector<std::string> special{"<|end|>", "<|e"};
  io::marked_texts marks(special, "#");
  CHECK(marks.hidden("a<|end|>b<|e c") == "a#0;b#1; c");
  CHECK(marks.hidden("none") == "none");
  CHECK(marks.found() == std::vector<std::string_view>{"<|end|>", "<|e"});
}

TEST_CASE("marked_texts: of JSON the strings alone, and no names", "[marked_texts]") {
  const std::vector<std::string> special{"<|end|>", "role", "{", "1"};
  io::marked_texts marks(special, "#");
  CHECK(marks.hidden_in_strings(R"({"role": "a <|end|>", "n": 1, "x": ["\"<|end|>\"", "{ "]})") ==
        R"({"role": "a #0;", "n": 1, "x": ["\"#1;\"", "#2; "]})");
  CHECK(marks.hidden_in_strings(R"({"<|end|>": {}})") == R"({"#3;": {}})");
  CHECK(marks.hidden_in_strings("").empty());
  for (const char* const cut : {"\"", "{\"a", "\"a\\"}) CHECK(marks.hidden_in_strings(cut) == cut);
}
