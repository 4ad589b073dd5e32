// SPDX-License-Identifier: MIT
#include "intaglio/io/sentencepiece_bpe.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/io/tokenizer.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using namespace intaglio::io;
using ids = std::vector<std::int32_t>;

namespace {

static_assert(byte_token_value("<0x00>") == 0 && byte_token_value("<0xFF>") == 255 &&
              byte_token_value("<0x9A>") == 0x9A);

/// The small vocabulary with further tokens.
vocabulary with(const std::vector<std::pair<const char*, int>>& tokens) {
  auto out = small_sentencepiece();
  for (const auto& [text, type] : tokens)
    out.tokens.push_back(text), out.token_types.push_back(type), out.scores.push_back(5);
  return out;
}
constexpr std::int32_t first_added = 3 + 256 + 10;

}  // namespace

TEST_CASE("sentencepiece_bpe: spaces are written as U+2581, and back") {
  CHECK(escape_spaces(" a  b") ==
        "\xE2\x96\x81"
        "a\xE2\x96\x81\xE2\x96\x81"
        "b");
  CHECK(unescape_spaces("\xE2\x96\x81"
                        "a\xE2\x96\x81\xE2\x96") == " a \xE2\x96");
  CHECK(escape_spaces("").empty());
}

TEST_CASE("sentencepiece_bpe: byte tokens are written in one way") {
  for (const char* text : {"", "<0x0>", "<0x000>", "<0y00>", "<0x00}", "<0xG0>", "<0x0G>", "<0xaf>", "<0xAf>", "<0x-1>",
                           "<0x0:>", "<0x0@>"}) {
    CAPTURE(text);
    CHECK_FALSE(byte_token_value(text));
  }
}

TEST_CASE("sentencepiece_bpe: words are merged one by one unless a token crosses from word to word") {
  const tokenizer apart(small_sentencepiece()), across(with({{"o\xE2\x96\x81h", 1}}));
  CHECK(apart.encode("hello hello") == ids{263, 263});
  CHECK(across.encode("lo hel") != apart.encode("lo hel"));
  const auto found = across.encode("o hel");
  CHECK(std::count(found.begin(), found.end(), first_added) == 1);
  CHECK(across.decode(found) == "o hel");
  // Also after a longer word, and at any index in the vocabulary.
  const tokenizer longer(with({{"hello\xE2\x96\x81h", 1}, {"elo", 1}}));
  CHECK(longer.decode(longer.encode("hello hello elo")) == "hello hello elo");
  CHECK(longer.encode("elo").back() == first_added + 1);
  // One that begins with many spaces crosses nothing.
  const tokenizer wide(with({{"\xE2\x96\x81\xE2\x96\x81h", 1}}));
  CHECK(wide.decode(wide.encode("  hello   hel")) == "  hello   hel");
  // A token that ends in the space of the next word, and one in which a single byte comes before that space.
  for (const char* text : {"lo\xE2\x96\x81", "h\xE2\x96\x81"}) {
    const tokenizer ends(with({{text, 1}}));
    CHECK(ends.decode(ends.encode("hello h hel")) == "hello h hel");
  }
}

TEST_CASE("sentencepiece_bpe: the space in front of a text, always, once or never") {
  auto file = small_sentencepiece();
  CHECK(tokenizer(file).encode("hel") == ids{262});
  CHECK(tokenizer(file).encode(" hel").size() == 2);  // one of its own, and one in front
  file.space_prefix_once = true;
  CHECK(tokenizer(file).encode("hel") == ids{262});
  CHECK(tokenizer(file).encode(" hel") == ids{262});
  CHECK(tokenizer(file).encode("\xE2\x96\x81hel") == ids{262});
  CHECK(tokenizer(file).encode("</s>hel", {.parse_special = true}) == ids{2, 265, 260});  // not after another token
  file.add_space_prefix = false;
  CHECK(tokenizer(file).encode("hel") == ids{265, 260});
  CHECK(tokenizer(file).decode(ids{262}) == " hel");
  CHECK(tokenizer(small_sentencepiece()).decode(ids{262}) == "hel");
  CHECK(tokenizer(small_sentencepiece()).decode(ids{265, 262}) == "h hel");
}

TEST_CASE("sentencepiece_bpe: tokens that are empty, unused or longer than all ordinary ones do no harm") {
  const tokenizer tokens(
      with({{"", 1}, {"", 4}, {"hello hello hello", 5}, {"<a control token that is longer than any other>", 3}}));
  CHECK(tokens.encode("hello hello hello") == ids{263, 263, 263});
  CHECK(tokens.piece(first_added).empty());
  CHECK(tokens.piece(first_added + 2) == "hello hello hello");
  CHECK(tokens.decode(tokens.encode("l\xC3\xA9\xFF")) == "l\xC3\xA9\xFF");
}

TEST_CASE("sentencepiece_bpe: characters that are no tokens can still make one by score") {
  // A character of two bytes and one more, which are a token together but neither alone.
  const tokenizer tokens(with({{"\xC3\xA9\xC3\xA8", 1}}));
  const auto found = tokens.encode("h\xC3\xA9\xC3\xA8");
  CHECK(found.back() == first_added);
  // Where the file has merges there is no score, and bytes stay bytes.
  auto merged = with({{"\xC3\xA9\xC3\xA8", 1}});
  merged.merges = {"e l"};
  const auto bytes = tokenizer(merged).encode("h\xC3\xA9\xC3\xA8");
  CHECK(std::equal(bytes.end() - 4, bytes.end(), ids{3 + 0xC3, 3 + 0xA9, 3 + 0xC3, 3 + 0xA8}.begin()));
}
