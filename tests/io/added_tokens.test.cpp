// SPDX-License-Identifier: MIT
// What is expected here is what tokenizers 0.23 gives for the same rules.
#include "intaglio/io/added_tokens.hpp"

#include <string>

#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "io/files.hpp"
#include "io/vocabularies.hpp"
#include "stopwatch.hpp"

using namespace intaglio;
using namespace intaglio::io;
using ids = std::vector<std::int32_t>;

namespace {

/// Stretches as they are, tokens as their id in brackets.
std::string cut(const added_tokens& tokens, std::string_view text) {
  std::string out;
  tokens.split(
      text, [](std::size_t, std::size_t, std::int32_t) { return true; },
      [&](std::size_t begin, std::size_t end) { out += "'" + std::string(text.substr(begin, end - begin)) + "'"; },
      [&](std::size_t, std::int32_t id) { out += "[" + std::to_string(id) + "]"; });
  return out;
}

}  // namespace

TEST_CASE("added_tokens: the longest text at a position, from left to right") {
  const added_tokens tokens({{"<a>", 1}, {"<a>b", 2}, {"b", 3}}, {});
  CHECK(cut(tokens, "") == "");
  CHECK(cut(tokens, "x") == "'x'");
  CHECK(cut(tokens, "<a>bb<a>") == "[2][3][1]");
  CHECK(cut(tokens, " <a> b ") == "' '[1]' '[3]' '");
  CHECK(cut(added_tokens(), "<a>") == "'<a>'");
}

TEST_CASE("added_tokens: white space before and after a token belongs to it where its rule says so") {
  const added_tokens tokens(
      {{"<l>", 1}, {"<r>", 2}, {"<b>", 3}},
      {{.id = 1, .lstrip = true}, {.id = 2, .rstrip = true}, {.id = 3, .lstrip = true, .rstrip = true}});
  CHECK(cut(tokens, "a \n<l> b") == "'a'[1]' b'");
  CHECK(cut(tokens, "a <r> \xC2\xA0\xE3\x80\x80\t b") == "'a '[2]'b'");
  CHECK(cut(tokens, " <b> ") == "[3]");
  CHECK(cut(tokens, "<r> <l>") == "[2][1]");
  CHECK(cut(tokens, "a\xE2\x80\x8B<l>") == "'a\xE2\x80\x8B'[1]");  // ZERO WIDTH SPACE is no white space
}

TEST_CASE("added_tokens: a token may begin in the white space that the one before it took along") {
  const added_tokens tokens({{"<r>", 1}, {"\n\n", 2}}, {{.id = 1, .rstrip = true}});
  CHECK(cut(tokens, "<r>\n\nx") == "[1][2]'x'");
  CHECK(cut(tokens, "<r>\n\n\nx") == "[1][2]'\nx'");
  const added_tokens lines({{"\n\n", 1}}, {{.id = 1, .lstrip = true, .rstrip = true}});
  CHECK(cut(lines, "a\n\n\n\nb") == "'a'[1]'b'");
}

TEST_CASE("added_tokens: long runs of white space that many tokens take along take no long time") {
  const added_tokens tokens({{"\n", 1}}, {{.id = 1, .lstrip = true, .rstrip = true}});
  const added_tokens right({{"\n", 1}}, {{.id = 1, .rstrip = true}});
  const std::string run(1'000'000, '\n');
  const intaglio::testing::stopwatch watch;
  CHECK(cut(tokens, run) == "[1]");
  CHECK(cut(right, run).size() == 3'000'000);
  CHECK(watch.seconds() < 5);
}

TEST_CASE("added_tokens: a single word is not part of one") {
  const added_tokens tokens({{"foo", 1}, {"fo", 2}}, {{.id = 1, .single_word = true}});
  CHECK(cut(tokens, "foo") == "[1]");
  CHECK(cut(tokens, "foo foo!") == "[1]' '[1]'!'");
  for (const char* touching : {"xfoo", "foox", "foo1", "foo_",
                               "\xC3\xA9"
                               "foo",
                               "foo\xCC\x81",
                               "\xE4\xB8\x80"
                               "foo"})
    CHECK(cut(tokens, touching) == "'" + std::string(touching) + "'");
}

TEST_CASE("added_tokens: normalised tokens are found in normalised text, after all others") {
  const temporary_folder folder;
  auto document = shared_json("conformance2/tokenizers/qwen2/tokenizer.json");
  const auto add = [&](int id, const char* text, bool normalized) {
    document["added_tokens"].push_back({{"id", id},
                                        {"content", text},
                                        {"single_word", false},
                                        {"lstrip", false},
                                        {"rstrip", false},
                                        {"normalized", normalized},
                                        {"special", false}});
  };
  add(1021, "e\xCC\x81<t", true), add(1022, "<to>", false);
  write_text(folder / "tokenizer.json", document.dump());
  const tokenizer tokens(vocabulary_from_hf_directory(folder.path()));
  CHECK(tokens.encode("e\xCC\x81<t") == ids{1021});
  CHECK(tokens.encode("\xC3\xA9<t") == ids{1021});
  // <to> is cut out first, though the other begins before it.
  const ids apart = tokens.encode("\xC3\xA9<to>");
  CHECK(apart.back() == 1022);
  CHECK(std::find(apart.begin(), apart.end(), 1021) == apart.end());
}

TEST_CASE("added_tokens: the code point before an offset, whatever the bytes") {
  CHECK(code_point_before("a\xC3\xA9", 3).value == U'\u00E9');
  CHECK(code_point_before("\xF0\x9F\x9A\x80", 4).bytes == 4);
  CHECK_FALSE(code_point_before("a\xA9", 2).valid);
  CHECK_FALSE(code_point_before("\x80\x80\x80\x80\x80", 5).valid);
}
