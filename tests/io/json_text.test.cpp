// SPDX-License-Identifier: MIT
#include "intaglio/io/json_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

/// Strings as they come; the key "bad" is refused.
class string_reader : public json_reader {
 public:
  explicit string_reader(std::uint64_t offset) : json_reader("file", offset) {}
  std::vector<std::string> strings;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool binary(json::binary_t&) { return true; }
  bool number_integer(json::number_integer_t) { return true; }
  bool number_unsigned(json::number_unsigned_t value) {
    if (value == 7) fail(3, "number", "another", "7");
    return true;
  }
  bool number_float(json::number_float_t, const std::string&) { return true; }
  bool string(std::string& value) { return strings.push_back(value), true; }
  bool start_object(std::size_t) { return true; }
  bool start_array(std::size_t) { return true; }
  bool end_object() { return true; }
  bool end_array() { return true; }
  bool key(std::string& name) {
    if (name == "bad") refuse("key 'bad'", "another");
    return true;
  }
};

constexpr std::uint64_t offset = 0x100;  // of the text in its file
std::vector<std::string> strings_of(const std::string& text) {
  string_reader reader(offset);
  read_json(text, "file", offset, reader);
  return reader.strings;
}
std::string refusal(const std::string& text) {
  try {
    strings_of(text);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

constexpr std::size_t longest = json_limits::string_bytes;

}  // namespace

TEST_CASE("json text: a reader gets the values in their order", "[json]") {
  CHECK(strings_of(R"({"a":"one","b":[1,-2,0.5,null,true,"two \"quoted\""],"c":{"d":"\u00e9"}})") ==
        std::vector<std::string>{"one", "two \"quoted\"", "\xC3\xA9"});
}

TEST_CASE("json text: what is no JSON is refused by file, offset and token", "[json]") {
  CHECK_THAT(refusal(R"({"a":x})"), StartsWith("file: offset 0x105: not valid JSON: syntax error"));
  CHECK_THAT(refusal("{} 1"), StartsWith("file: offset 0x103: not valid JSON: "));
  CHECK_THAT(refusal("\n\n[1,]"), StartsWith("file: offset 0x105: not valid JSON: "));
  // The library's reason, not only what it read last, whatever that holds.
  CHECK_THAT(refusal(R"(["a: b",x])"),
             ContainsSubstring("not valid JSON: syntax error while parsing value") && ContainsSubstring("found '"));
  CHECK_THAT(refusal("[1e999]"), ContainsSubstring("number overflow"));
  for (const char* text : {"", " ", "{", "[1", "\"a", "nul", "{\"a\" 1}", "[\"\xFF\"]", "[\"\x01\"]", "[1e999]"}) {
    INFO(text);
    CHECK_THAT(refusal(text), StartsWith("file: offset 0x10"));
  }
  // Text of the file cannot reach a terminal as it is.
  CHECK_THAT(refusal("[\"\x7F\",x]"), ContainsSubstring("\\x7f") && !ContainsSubstring("\x7F"));
}

TEST_CASE("json text: a NUL byte hides nothing behind it", "[json]") {
  CHECK(refusal(std::string("{}\0[", 4)) == "file: offset 0x102: not valid JSON: expected text, found a NUL byte");
  CHECK(refusal(std::string("\"\0\"", 3)) == "file: offset 0x101: not valid JSON: expected text, found a NUL byte");
}

TEST_CASE("json text: strings are as long as they may be, in the text and one by one", "[json]") {
  const std::string whole(longest, 'a');
  CHECK((strings_of("[\"" + whole + "\",\"a\"]") == std::vector<std::string>{whole, "a"}));
  const std::string too_long = "file: offset 0x101: a string is too long: expected at most 1048576 bytes, found more";
  CHECK(refusal("[\"" + whole + "a\"]") == too_long);
  CHECK(refusal("[\"" + whole + "a") == too_long);
  CHECK(refusal("{\"" + whole + "a\":0}").starts_with("file: offset 0x101: a string is too long"));
  // An escaped quote ends none, an escaped backslash escapes none; what is long and no string is the lexer's.
  std::string quotes;
  for (std::size_t i = 0; i < longest / 2; ++i) quotes += "\\\"";
  CHECK(refusal("[\"" + quotes + "a\"]") == too_long);
  CHECK((strings_of("[\"\\\\\"," + std::string(longest + 1, ' ') + "\"a\"]") == std::vector<std::string>{"\\", "a"}));
}

TEST_CASE("json text: a reader's own refusals name the file, and the offset where there is one", "[json]") {
  CHECK(refusal("[7]") == "file: offset 0x103: number: expected another, found 7");
  CHECK(refusal(R"({"bad":1})") == "file: key 'bad': expected another");
}
