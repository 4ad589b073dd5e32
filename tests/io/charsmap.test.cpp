// SPDX-License-Identifier: MIT
#include "intaglio/io/charsmap.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/charsmaps.hpp"

using namespace intaglio;
using namespace intaglio::test;

namespace {

using rule = std::pair<std::size_t, std::string>;
rule found(const io::charsmap& map, std::string_view text, std::size_t at = 0) {
  const auto out = map.find(text, at);
  return {out.bytes, std::string(out.text)};
}
void expect_refused(const std::string& bytes, const std::string& line) {
  CHECK_THROWS_MATCHES(io::charsmap(bytes, "m"), file_error,
                       Catch::Matchers::Message("m: tokenizer.ggml.precompiled_charsmap: expected " + line));
}
void expect_broken(const std::vector<std::uint32_t>& units, std::string_view texts, const std::string& problem) {
  expect_refused(charsmap_of(units, texts), "a trie of texts and replacements, found " + problem);
}

}  // namespace

TEST_CASE("a map that sentencepiece made replaces the longest start", "[io]") {
  const io::charsmap map(published_charsmap(), "m");
  CHECK_FALSE(map.empty());
  CHECK(found(map, "\357\254\201") == rule{3, "fi"});
  CHECK(found(map, "\342\221\240") == rule{3, "1"});
  CHECK(found(map, "\357\275\266") == rule{3, "\343\202\253"});
  CHECK(found(map, "\357\275\266\357\276\236") == rule{6, "\343\202\254"});
  CHECK(found(map, "xe\314\201", 1) == rule{3, "\303\251"});
  CHECK(found(map, "\342\200\213a") == rule{3, ""});
  CHECK(found(map, "\342\200\246") == rule{3, "..."});
  CHECK(found(map, "\t\t") == rule{1, " "});
  for (const char* none : {"", "e", "a", "\342\221", "\303\251", "\357\276\236"})
    CHECK(found(map, none) == rule{0, ""});
  CHECK(found(map, std::string_view("\0\t", 2)) == rule{0, ""});
  CHECK(found(io::charsmap(), "\t") == rule{0, ""});
  CHECK(io::charsmap("", "m").empty());
}

TEST_CASE("a map of the tests' own is read alike", "[io]") {
  const io::charsmap map(charsmap_of({{"a", "b"}, {"abc", "\303\244"}, {"\377", ""}}), "m");
  CHECK(found(map, "ab") == rule{1, "b"});
  CHECK(found(map, "abcd") == rule{3, "\303\244"});
  CHECK(found(map, "\377\377") == rule{1, ""});
}

TEST_CASE("a map that is cut, leaves itself or goes round is refused", "[io]") {
  const std::string whole = published_charsmap();
  expect_refused("abc", "4 to 8388608 bytes, found 3");
  expect_refused(std::string((8u << 20) + 1, '\0'), "4 to 8388608 bytes, found 8388609");
  expect_refused(whole.substr(0, 1027), "a trie in blocks of 1024 bytes, at most 1023, found 1024");
  expect_refused(std::string(4, '\0'), "a trie in blocks of 1024 bytes, at most 0, found 0");
  expect_refused(std::string("\377\377\377\377", 4) + whole,
                 "a trie in blocks of 1024 bytes, at most " + std::to_string(whole.size()) + ", found 4294967295");
  for (std::size_t size = 1028; size < whole.size(); ++size)
    CHECK_THROWS_AS(io::charsmap(std::string_view(whole).substr(0, size), "m"), file_error);

  std::vector<std::uint32_t> units(512);
  units[0] = trie_unit(0, 256, false);
  CHECK_NOTHROW(io::charsmap(charsmap_of(units, ""), "m"));
  units[256 + 'a'] = trie_unit('a', 0x1000, false);
  expect_broken(units, "", "an edge from unit 353 out of the trie");
  units[256 + 'a'] = trie_unit('a', 'a', false);  // its children are its own block
  expect_broken(units, "", "a branch that leads back to unit 353");
  units[256 + 'a'] = trie_unit('a', 'a', true);
  units[256] = 0x80000000u | 3;
  expect_broken(units, std::string_view("ab", 2), "replacement at 3 of 2 bytes");
  units[256] = 0x80000000u | 1;
  expect_broken(units, std::string_view("ab", 2), "replacement at 1 without an end");
  expect_broken(units, std::string_view("a\377", 3), "replacement at 1 that is no UTF-8");
  expect_broken(units, std::string(300, 'x') + '\0', "replacement at 1 of more than 256 bytes");
  units[0] = trie_unit(0, 512, false);
  expect_broken(units, "", "an edge from unit 0 out of the trie");
}

TEST_CASE("branches of a map may meet", "[io]") {
  // a and b have the children of one block.
  std::vector<std::uint32_t> units(1024);
  units[0] = trie_unit(0, 256, false);
  for (const std::uint32_t byte : {0x61u, 0x62u}) units[256 + byte] = trie_unit(byte, (256 + byte) ^ 512, false);
  units[512 + 'c'] = trie_unit('c', (512 + 'c') ^ 768, true);
  units[768] = 0x80000000u;
  const io::charsmap map(charsmap_of(units, std::string_view("x", 2)), "m");
  CHECK(found(map, "ac") == rule{2, "x"});
  CHECK(found(map, "bc") == rule{2, "x"});
}
