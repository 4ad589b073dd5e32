// SPDX-License-Identifier: MIT
#include "intaglio/io/detokenizer.hpp"

#include <random>

#include "io/vocabularies.hpp"

using namespace intaglio;
using ids = std::vector<std::int32_t>;

namespace {

std::string stream(io::detokenizer& out, const ids& tokens) {
  std::string text;
  for (const auto id : tokens) {
    const auto part = out.feed(id);
    CHECK(io::is_utf8(part));
    CHECK(out.pending().size() <= 3);
    text += part;
  }
  return text;
}

std::string whole_stream(io::detokenizer& out, const ids& tokens) {
  std::string text = stream(out, tokens);
  return text += out.flush();
}

ids bytes(std::string_view text) {
  ids out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

}  // namespace

TEST_CASE("a character comes out with its last byte, not before") {
  const io::tokenizer tokens(small_byte_level());
  io::detokenizer out(tokens);
  CHECK(out.feed('a') == "a");
  CHECK(out.feed(0xF0).empty());
  CHECK(out.feed(0x9F).empty());
  CHECK(out.feed(0x9A).empty());
  CHECK(out.pending() == "\xF0\x9F\x9A");
  CHECK(out.feed(0x80) == "\xF0\x9F\x9A\x80");
  CHECK(out.flush().empty());
}

TEST_CASE("bytes that never become a character come out as U+FFFD") {
  const io::tokenizer tokens(small_byte_level());
  const std::string mark = "\xEF\xBF\xBD";
  {
    io::detokenizer out(tokens);
    CHECK(out.feed(0xFF) == mark);
    CHECK(out.feed(0xE2).empty());
    CHECK(out.feed('z') == mark + "z");
    CHECK(out.feed(0xC3).empty());
    CHECK(out.flush() == mark);
    CHECK(out.flush().empty());
  }
  std::mt19937 random(17);
  for (int round = 0; round < 2'000; ++round) {
    ids all;
    for (std::size_t i = random() % 12; i > 0; --i)
      all.push_back(static_cast<std::int32_t>(random() % 3 ? 0x80 + random() % 128 : random() % 264));
    io::detokenizer out(tokens, {.skip_control = true, .text_start = true});
    const std::string streamed = whole_stream(out, all);
    std::string whole;
    io::append_replacing_invalid(whole, tokens.decode(all, {.skip_control = true}));
    REQUIRE(streamed == whole);
  }
}

TEST_CASE("control tokens are printed or left out") {
  const io::tokenizer tokens(small_byte_level());
  io::detokenizer silent(tokens), loud(tokens, {.skip_control = false, .text_start = false});
  CHECK(stream(silent, {261, 259, 263}) == "hello");
  CHECK(stream(loud, {261, 259, 263}) == "<|begin_of_text|>hello<|eot_id|>");
  CHECK_THROWS_AS(silent.feed(264), argument_error);
}

TEST_CASE("the added space goes at the start of a text only") {
  const io::tokenizer tokens(small_sentencepiece());
  io::detokenizer answer(tokens), text(tokens, {.skip_control = true, .text_start = true});
  CHECK(stream(answer, {263, 263}) == " hello hello");
  CHECK(stream(text, {1, 263, 263}) == "hello hello");
  CHECK(tokens.decode(ids{1, 263}, {.skip_control = true}) == "hello");
  CHECK(tokens.decode(ids{1, 263}) == "<s> hello");
  CHECK(tokens.decode(ids{264, 263}) == " hello");
  CHECK(tokens.decode(ids{263}, {.skip_control = false, .text_start = false}) == " hello");
}

TEST_CASE("every split of valid text into tokens streams back the text") {
  const io::tokenizer tokens(production_vocabulary("llama-bpe"));
  const std::string text =
      "na\xC3\xAFve \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 end";
  io::detokenizer out(tokens);
  CHECK(whole_stream(out, tokens.encode(text)) == text);
  const io::tokenizer single(small_byte_level());
  io::detokenizer slow(single);
  CHECK(whole_stream(slow, bytes(text)) == text);
}
