// SPDX-License-Identifier: MIT
#include "intaglio/io/same_tokens.hpp"

#include "io/vocabularies.hpp"

using namespace intaglio;

namespace {

constexpr int unused = 5;  // as GGUF numbers kinds of tokens

std::string other_token(const io::vocabulary& a, const io::vocabulary& b) {
  return io::first_other_token(io::tokenizer(a), io::tokenizer(b));
}

/// The small vocabulary with one more token at its end.
io::vocabulary longer(const std::string& text, int type) {
  io::vocabulary out = small_byte_level();
  out.tokens.push_back(text), out.token_types.push_back(type);
  return out;
}

}  // namespace

TEST_CASE("a vocabulary has the tokens of itself and of one that merges otherwise") {
  const io::vocabulary all = small_byte_level();
  CHECK(other_token(all, all).empty());
  io::vocabulary merged = all;
  merged.merges.pop_back();  // how texts are cut is not what ids mean
  CHECK(other_token(all, merged).empty());
  CHECK(other_token(small_sentencepiece(), small_sentencepiece()).empty());
}

TEST_CASE("the first token of another text is reported with both texts") {
  const io::vocabulary all = small_byte_level();
  io::vocabulary changed = all;
  changed.merges = {"h e", "l l"};
  changed.tokens[258] = "lo", changed.tokens[260] = "x";
  CHECK(other_token(all, changed) == "token 258: 'llo' and 'lo'");
  CHECK(other_token(changed, all) == "token 258: 'lo' and 'llo'");
  io::vocabulary long_text = all;
  long_text.merges = {"h e", "l l", "ll o"};
  long_text.tokens[259] = std::string(100, 'a');
  const std::string text = other_token(all, long_text);
  CHECK(text.starts_with("token 259: 'hello' and 'aaaa"));
  CHECK(text.size() < 100);
}

TEST_CASE("a token that only one of both has counts, unless it stands for no text") {
  const io::vocabulary all = small_byte_level();
  CHECK(other_token(all, longer("more", 1)) == "token 264: none and 'more'");
  CHECK(other_token(longer("more", 1), all) == "token 264: 'more' and none");
  CHECK(other_token(all, longer("[PAD264]", unused)).empty());
  CHECK(other_token(longer("[PAD264]", unused), all).empty());
  CHECK(other_token(longer("[PAD264]", unused), longer("[unused0]", unused)).empty());
  CHECK(other_token(longer("[PAD264]", unused), longer("more", 1)) == "token 264: none and 'more'");
}

TEST_CASE("another family of tokens differs at its first id") {
  CHECK(other_token(small_byte_level(), small_sentencepiece()).starts_with("token 0: "));
}
