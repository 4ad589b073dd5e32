// SPDX-License-Identifier: MIT
#include "../../examples/tool/terminal_text.hpp"

#include "../../examples/tool/terminal_markdown.hpp"

#include <catch2/catch_test_macros.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace {

using intaglio::tool::columns_of;
using intaglio::tool::markdown_lines;
using intaglio::tool::terminal_text;
using intaglio::tool::wrapped;

/// The part of a terminal that terminal_text needs: lines, of which the last `rows` can be written over.
class screen {
 public:
  screen(std::size_t columns, std::size_t rows) : columns_(columns), rows_(rows) {}

  void write(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == '\x1b') {
        at = sequence(text, at);
      } else if (text[at] == '\n') {
        if (++row_ == lines_.size()) lines_.emplace_back();
        column_ = 0, ++at;
      } else if (text[at] == '\r') {
        column_ = 0, ++at;
      } else {
        std::size_t end = at + 1;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
        const std::string character(text.substr(at, end - at));
        REQUIRE(column_ == columns_of(lines_[row_]));  // it only writes after what a line has
        lines_[row_] += character;
        column_ += columns_of(character);
        REQUIRE(column_ < columns_);
        at = end;
      }
    }
  }
  std::vector<std::string> lines() const { return lines_; }

 private:
  std::size_t sequence(std::string_view text, std::size_t at) {
    REQUIRE(text[at + 1] == '[');
    std::size_t number = 0, end = at + 2;
    while (end < text.size() && (text[end] == ';' || (text[end] >= '0' && text[end] <= '9'))) ++end;
    std::from_chars(text.data() + at + 2, text.data() + end, number);
    if (text[end] == 'A') {
      REQUIRE(number < rows_);
      REQUIRE(number <= row_);
      row_ -= number;
    } else if (text[end] == 'J') {
      lines_.resize(row_ + 1);
      lines_[row_].clear();  // it stands at the line's beginning
      REQUIRE(column_ == 0);
    } else {
      REQUIRE(text[end] == 'm');
    }
    return end + 1;
  }

  std::size_t columns_, rows_, row_ = 0, column_ = 0;
  std::vector<std::string> lines_{""};
};

std::string without_colours(std::string_view line) {
  std::string out;
  for (std::size_t at = 0; at < line.size(); ++at)
    if (line[at] == '\x1b') at = line.find('m', at);
    else out += line[at];
  return out;
}
std::vector<std::string> without_colours(std::vector<std::string> lines) {
  for (std::string& each : lines) each = without_colours(each);
  return lines;
}

/// What stands on the screen when `text` came in pieces of `size` bytes.
std::vector<std::string> shown(std::string_view text, std::size_t size, bool markdown, std::size_t columns = 40,
                               std::size_t rows = 50) {
  screen at(columns, rows);
  terminal_text reply(columns, rows, markdown);
  for (std::size_t from = 0; from < text.size(); from += size) at.write(reply.show(text.substr(from, size)));
  at.write(reply.finish());
  return at.lines();
}

constexpr std::string_view letter = R"(# A letter

Dear **reader**, this line is *longer* than the terminal is wide, and has `code` in it.

1. first
2. second, which is also longer than one line of it
   - inner

```cpp
int main() { return 0; }
```

> A quote, of which the words go on in the line after.

| name | age |
|---|---|
| Ada | 36 |
| Grace | 85 |

See [the page](https://example.org/a).)";

TEST_CASE("words stay whole, and lines within the terminal", "[tool]") {
  CHECK(wrapped("one two three", 8) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped("  in front", 8) == std::vector<std::string>{"  in", "front"});
  CHECK(wrapped("a\n\nb", 8) == std::vector<std::string>{"a", "", "b"});
  CHECK(wrapped("abcdefghij", 4) == std::vector<std::string>{"abcd", "efgh", "ij"});
  CHECK(wrapped("", 8) == std::vector<std::string>{""});
  CHECK(columns_of("日本") == 4);
  CHECK(columns_of("e\u0301") == 1);
  CHECK(columns_of("\x1b[1mbold\x1b[0m") == 4);
  CHECK(wrapped("日本日本", 5) == std::vector<std::string>{"日本", "日本"});
}

TEST_CASE("a reply is the same on the screen however it came", "[tool]") {
  const std::string plain = "One line that is longer than forty columns of a terminal.\n\nTwo: \u00e9\u65e5\u672c.\n";
  const std::vector<std::string> whole = shown(plain, plain.size(), false);
  CHECK(whole == std::vector<std::string>{"One line that is longer than forty", "columns of a terminal.", "",
                                          "Two: \u00e9\u65e5\u672c."});
  for (const std::size_t size : {1u, 2u, 3u, 7u}) CHECK(shown(plain, size, false) == whole);
}

TEST_CASE("control characters of a model do not reach the terminal", "[tool]") {
  CHECK(shown("a\x1b[2Jb\x07", 1, false) == std::vector<std::string>{"a\ufffd[2Jb\ufffd"});
  CHECK(shown("\xc2\x9b"
              "2J",
              1, false) == std::vector<std::string>{"\ufffd2J"});
  CHECK(shown("cut \xe6\x97", 1, false) == std::vector<std::string>{"cut \ufffd"});
}

TEST_CASE("thoughts are set apart, and are no Markdown", "[tool]") {
  terminal_text reply(40, 50, true);
  const std::string out = reply.show("\x01**hm**\x02Yes.") + reply.finish();
  CHECK(out == "\x1b[2m**hm**\x1b[0m\n\nYes.");
}

TEST_CASE("Markdown is drawn while it comes", "[tool]") {
  if (!intaglio::tool::reads_markdown()) SKIP("md4c is not there (Debian, Ubuntu: apt install libmd4c0)");
  const std::vector<std::string> whole = shown(letter, letter.size(), true);
  CHECK(whole == std::vector<std::string>{"A letter",
                                          "",
                                          "Dear reader, this line is longer than",
                                          "the terminal is wide, and has code in",
                                          "it.",
                                          "",
                                          "1. first",
                                          "2. second, which is also longer than",
                                          "   one line of it",
                                          "   • inner",
                                          "",
                                          "int main() { return 0; }",
                                          "",
                                          "│ A quote, of which the words go on in",
                                          "│ the line after.",
                                          "",
                                          "name   age",
                                          "────────────",
                                          "Ada    36",
                                          "Grace  85",
                                          "",
                                          "See the page (https://example.org/a)."});
  for (const std::size_t size : {1u, 3u, 16u}) CHECK(shown(letter, size, true) == whole);
  // On a small screen too, what went out of it stays as it was.
  CHECK(shown(letter, 5, true, 40, 4).size() >= whole.size());
}

TEST_CASE("no line is longer than the terminal, however narrow", "[tool]") {
  if (!intaglio::tool::reads_markdown()) SKIP("md4c is not there (Debian, Ubuntu: apt install libmd4c0)");
  for (const std::size_t columns : {8u, 13u, 80u})
    for (const std::string& each : markdown_lines(letter, columns)) CHECK(columns_of(each) <= columns);
}

TEST_CASE("markup that is nested or broken ends", "[tool]") {
  if (!intaglio::tool::reads_markdown()) SKIP("md4c is not there (Debian, Ubuntu: apt install libmd4c0)");
  std::string deep;
  for (int i = 0; i < 60; ++i) deep += std::string(static_cast<std::size_t>(i), '>') + " - *a **b\n";
  CHECK(!markdown_lines(deep, 20).empty());
  CHECK(without_colours(markdown_lines("**open `and", 20)) == std::vector<std::string>{"**open `and"});
  CHECK(without_colours(markdown_lines("```\nnot closed", 20)) == std::vector<std::string>{"not closed"});
}

}  // namespace
