// SPDX-License-Identifier: MIT
#include "intaglio/io/cased_letters.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "intaglio/io/pretokenizer_names.hpp"

using namespace intaglio::io;

TEST_CASE("cased_letters: ranges are in order, and the expression lists them as tokenizer.json does") {
  for (std::size_t i = 0; i < cased_letters.size(); ++i) {
    CHECK(cased_letters[i].first <= cased_letters[i].last);
    if (i != 0) CHECK(cased_letters[i - 1].last < cased_letters[i].first);
  }
  CHECK((is_cased_letter(U'A') && is_cased_letter(U'z') && is_cased_letter(0x1E943)));
  CHECK((!is_cased_letter(U'@') && !is_cased_letter(U'[') && !is_cased_letter(0xAA) && !is_cased_letter(0x4E00)));
  CHECK((!is_cased_letter(0) && !is_cased_letter(0x10FFFF)));
  const std::string text = cased_letter_class();
  CHECK(text.starts_with("A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293"));
  CHECK(text.find("\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386") != std::string::npos);
  CHECK(text.ends_with("\U000118A0-\U000118DF\U0001E900-\U0001E943"));
  CHECK(std::any_of(hf::known_splits().begin(), hf::known_splits().end(),
                    [](const auto& each) { return each.kind == pretokenizer::deepseek_llm; }));
}
