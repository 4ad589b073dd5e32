// SPDX-License-Identifier: MIT
#include "intaglio/io/prompt.hpp"

#include "io/vocabularies.hpp"

using namespace intaglio;
using io::encode_prompt;
using io::prompt_markup;
using ids = std::vector<std::int32_t>;

TEST_CASE("control tokens of a ready-made prompt are read, after one BOS") {
  const io::tokenizer tokens(small_byte_level());
  REQUIRE(tokens.adds_bos());
  CHECK(encode_prompt(tokens, "hello<|eot_id|>") == ids{261, 259, 263});
  CHECK(encode_prompt(tokens, "<|begin_of_text|>hello<|eot_id|>") == ids{261, 259, 263});
  CHECK(encode_prompt(tokens, "<|begin_of_text|>") == ids{261});
  CHECK(encode_prompt(tokens, "") == ids{261});
  // Only the BOS that would stand twice is left out.
  CHECK(encode_prompt(tokens, "<|begin_of_text|><|begin_of_text|>hello") == ids{261, 261, 259});
  CHECK(encode_prompt(tokens, "hello<|begin_of_text|>") == ids{261, 259, 261});
}

TEST_CASE("a plain prompt keeps the texts of control tokens as text") {
  const io::tokenizer tokens(small_byte_level());
  const ids plain = encode_prompt(tokens, "<|begin_of_text|>hello", prompt_markup::plain);
  CHECK(plain.front() == 261);
  CHECK(plain.size() > 10);
  CHECK(tokens.decode(std::span(plain).subspan(1)) == "<|begin_of_text|>hello");
}

TEST_CASE("a model without BOS gets none, but one that is written stays") {
  io::vocabulary file = small_byte_level();
  file.add_bos = false;
  const io::tokenizer tokens(file);
  CHECK(encode_prompt(tokens, "hello") == ids{259});
  CHECK(encode_prompt(tokens, "<|begin_of_text|>hello") == ids{261, 259});
}

TEST_CASE("BOS and EOS may be the same token") {
  io::vocabulary file = small_byte_level();
  file.eos_id = file.bos_id;
  file.add_bos = true;
  const io::tokenizer tokens(file);
  CHECK(encode_prompt(tokens, "<|begin_of_text|>hello<|begin_of_text|>") == ids{261, 259, 261});
}

TEST_CASE("the pieces of a SentencePiece prompt begin as they do after an added BOS") {
  const io::tokenizer tokens(small_sentencepiece());
  CHECK(encode_prompt(tokens, "<s>hello") == encode_prompt(tokens, "hello"));
  CHECK(encode_prompt(tokens, "hello").front() == 1);
}
