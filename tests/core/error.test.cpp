// SPDX-License-Identifier: MIT
#include "intaglio/core/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <tuple>
#include <vector>

using namespace intaglio;

TEST_CASE("a file's error names path, offset, expected and found", "[core][error]") {
  const file_error e("model.gguf", 0x24e0, "tensor 'blk.0.attn_q.weight'", "2 dims", "5");
  CHECK(std::string(e.what()) == "model.gguf: offset 0x24e0: tensor 'blk.0.attn_q.weight': expected 2 dims, found 5");
  CHECK(e.path() == "model.gguf");
  CHECK(e.offset() == 0x24e0u);
  CHECK(e.expected() == "2 dims");
  CHECK(e.found() == "5");
  CHECK(std::string(file_error("m", std::nullopt, "no such file").what()) == "m: no such file");
}

TEST_CASE("a mismatch counts the differences, and keeps them all with the remedy", "[core][error]") {
  const std::vector<std::string> two{"num_hidden_layers: engraved 30, file 24", "vocab_size: engraved 1, file 2"};
  const mismatch_error e("m.gguf", two, "intaglio engrave m.gguf -o DIR");
  CHECK(std::string(e.what()) ==
        "m.gguf: the file does not match the engraved model in 2 values, the first: num_hidden_layers: engraved 30, "
        "file 24; engrave it with: intaglio engrave m.gguf -o DIR");
  CHECK(e.differences() == two);
  CHECK(e.details() == std::vector<std::string>{two[0], two[1], "engrave it with: intaglio engrave m.gguf -o DIR"});
  CHECK(std::string(mismatch_error("m.gguf", {two[1]}, "").what()) ==
        "m.gguf: the file does not match the engraved model: vocab_size: engraved 1, file 2");
}

TEST_CASE("an error's text is one line of bounded length, with the file first", "[core][error]") {
  const std::string path = "/a/" + std::string(500, 'd') + "/model.gguf", many(3000, 'x'), lines = "one\ntwo\n" + many,
                    umlauts = [] {
                      std::string out;
                      for (int i = 0; i < 500; ++i) out += "\xC3\xA4";
                      return out;
                    }();
  for (const auto& [where, what, expected, found] : {std::tuple{path, many, many, many},
                                                     {path, lines, lines, lines},
                                                     {"m.gguf", many, "", ""},
                                                     {path, umlauts, "", many},
                                                     {path, umlauts, umlauts, umlauts},
                                                     {umlauts, "what", "", ""}}) {
    const std::string text = file_error(where, 0x123456789, what, expected, found).what();
    CAPTURE(text);
    CHECK(text.size() <= error_text_limit);
    CHECK(is_printable(text));
    CHECK(text.find("offset 0x123456789") != std::string::npos);
    if (where == path) CHECK(text.find("/model.gguf: ") != std::string::npos);
    if (!found.empty()) CHECK(text.find(", found ") != std::string::npos);
  }
  CHECK(std::string(argument_error(many, many, many).what()).size() <= error_text_limit);
  CHECK(in_file("a\nb", "odd") == "a\\x0ab: odd");
}

TEST_CASE("names are UTF-8 without control characters", "[core][error]") {
  CHECK(is_printable("blk.0.caf\xC3\xA9"));
  CHECK(is_printable(std::string(500, 'a')));
  CHECK(is_printable(""));
  for (const char* odd : {"a\n", "a\x1B[2J", "\x7F", "\xC2\x85", "\xFF", "\xED\xA0\x80"})
    CHECK_FALSE(is_printable(odd));
  CHECK_FALSE(is_printable(std::string_view("a\0b", 3)));
}

TEST_CASE("what a file holds is printed safely", "[core][error]") {
  CHECK(printable("plain caf\xC3\xA9") == "plain caf\xC3\xA9");
  CHECK(printable(std::string_view("a\0b\n\x7F", 5)) == "a\\x00b\\x0a\\x7f");
  CHECK(printable("\xFF\xC3(") == "\\xff\\xc3(");
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xC2\x9B[31m") == "\\xc2\\x9b[31m");   // a C1 control character
  CHECK(printable(std::string(1000, 'x'), 40).size() <= 43);
  CHECK(hexadecimal(0) == "0x0");
  CHECK(hexadecimal(~0ull) == "0xffffffffffffffff");
}

TEST_CASE("one root catches all", "[core][error]") {
  CHECK_THROWS_AS(throw device_lost("card", "submit", "gone", -4), device_error);
  CHECK_THROWS_AS(throw out_of_memory("card", "allocate", "full", -2), error);
  CHECK_THROWS_AS(throw argument_error("top_p", "0 to 1", "2"), error);
  CHECK(device_error("card", "submit", "gone", -4).result() == -4);
}
